// The 57 transpositions of the TTC benchmark in float32 on the CPU, in the
// library's own memory.
//
// Counters
//   GB/s     bytes read and written a second, of the best iteration
//   of_copy  ratio to a streaming copy of as many bytes on the same threads,
//            measured before each iteration; median of the iterations
#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "benchmark/benchmark.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/cpu/permutation_blocked.h"
#include "core/device/host_stream.h"
#include "core/memory/host_resource.h"
#include "tests/benchmarks/bandwidth.h"

namespace tensord::test {
namespace {

struct BenchCase {
  int id = 0;
  std::string kind;  // "inner" or "transp"
  core::PermutationProblem problem;

  int64_t bytes() const {
    return core::ElementCount(problem.modes) * core::SizeOf(problem.type_d);
  }
};

core::PermutationProblem ProblemOf(const std::vector<int64_t>& extents,
                                   const std::vector<int64_t>& order) {
  core::PermutationDesc desc{.alpha_is_one = true};
  for (size_t i = 0; i < extents.size(); ++i) {
    desc.a.modes.push_back(static_cast<core::Mode>(i));
    desc.a.layout.extents.push_back(extents[i]);
    desc.d.modes.push_back(static_cast<core::Mode>(order[i]));
    desc.d.layout.extents.push_back(extents[order[i]]);
  }
  for (core::OperandDesc* operand : {&desc.a, &desc.d}) {
    operand->layout = core::PackedLayout(operand->layout.extents,
                                         core::Order::kFirstModeFastest);
  }
  return core::Canonicalize(desc);
}

std::vector<int64_t> ParseNumbers(const std::string& text) {
  std::vector<int64_t> numbers;
  for (const auto& word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    int64_t number;
    if (absl::SimpleAtoi(word, &number)) numbers.push_back(number);
  }
  return numbers;
}

std::vector<BenchCase> ReadCases(const std::string& path) {
  std::vector<BenchCase> cases;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    BenchCase bench_case;
    if (cells.size() != 9 || !absl::SimpleAtoi(cells[0], &bench_case.id)) {
      continue;
    }
    bench_case.kind = cells[8];
    bench_case.problem =
        ProblemOf(ParseNumbers(cells[3]), ParseNumbers(cells[2]));
    cases.push_back(std::move(bench_case));
  }
  return cases;
}

void RunCase(benchmark::State& state, const BenchCase& bench_case,
             core::ThreadPool& threads, const void* a, void* d) {
  const auto kernel = core::CreateBlockedPermutation(threads);
  const auto solution = kernel->Solve(bench_case.problem).value();
  core::HostStream stream;
  core::Workspace workspace({});
  const auto run = [&] {
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status =
        solution->Launch({.a = a, .d = d}, workspace, stream);
    if (!status.ok()) state.SkipWithError("the kernel failed");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  };
  run();
  double best = run();
  std::vector<double> ratios;
  for (auto _ : state) {
    const double copy = SecondsToCopy(a, d, bench_case.bytes(), threads);
    const double seconds = run();
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
    ratios.push_back(copy / seconds);
  }
  std::sort(ratios.begin(), ratios.end());
  state.counters["GB/s"] = 2e-9 * bench_case.bytes() / best;
  state.counters["of_copy"] = ratios[ratios.size() / 2];
}

}  // namespace
}  // namespace tensord::test

int main(int argc, char** argv) {
  using namespace tensord;  // NOLINT: main alone
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const int thread_count = core::CreateCpuBackend({})->info().thread_count;
  benchmark::AddCustomContext("threads", std::to_string(thread_count));
  core::ThreadPool threads(thread_count);

  const auto cases = test::ReadCases(TENSORD_BENCHMARK_DATA "/ttc57.csv");
  int64_t bytes = 0;
  for (const auto& bench_case : cases)
    bytes = std::max(bytes, bench_case.bytes());
  core::HostResource memory;
  const core::Buffer a = core::Buffer::Allocate(memory, bytes).value();
  const core::Buffer d = core::Buffer::Allocate(memory, bytes).value();
  std::memset(a.data(), 1, bytes);
  std::memset(d.data(), 2, bytes);

  for (const auto& bench_case : cases) {
    const std::string name =
        absl::StrFormat("TTC/float32/%s/%02d", bench_case.kind, bench_case.id);
    benchmark::RegisterBenchmark(name.c_str(),
                                 [&](benchmark::State& state) {
                                   test::RunCase(state, bench_case, threads,
                                                 a.data(), d.data());
                                 })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->Iterations(9);
  }
  benchmark::RunSpecifiedBenchmarks();
}
