// The 48 contractions of the TCCG benchmark on the CPU backend, through the
// kernel that the cost model prefers.
//
// Counters, of the best iteration:
//   GFLOP/s
//   of_peak  ratio to the best product of square matrices (2048) seen so far in
//            the same run, on the same threads
//
// Compute-bound cases are scaled down, so that none takes seconds.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "benchmark/benchmark.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/problem/contraction_problem.h"

namespace tensord::core {
namespace {

using Extents = std::map<char, int64_t>;

struct Contraction {
  std::string d, a, b;  // labels, first mode fastest
  Extents extents;

  double flops() const {
    double product = 2;
    for (const auto& [label, extent] : extents) product *= extent;
    return product;
  }
};

struct BenchCase {
  int id;
  std::string group;
  Contraction contraction;
};

double Seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Extents of the cases that would take seconds, cut to about a second.
Extents Scaled(int id, Extents extents) {
  if (id != 12 && id < 20) return extents;
  if (id > 30) return extents;
  const std::map<int64_t, int64_t> smaller = {
      {72, 56},     {84, 56},     {96, 64},    {7240, 3072},
      {7248, 3072}, {5120, 2048}, {5136, 2048}};
  for (auto& [label, extent] : extents) {
    const auto found = smaller.find(extent);
    if (found != smaller.end()) extent = found->second;
  }
  return extents;
}

std::vector<BenchCase> ReadCases(const std::string& path, ElementType type) {
  std::vector<BenchCase> cases;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    // The einsum column is quoted and has a comma.
    const std::vector<std::string> quoted = absl::StrSplit(line, '"');
    int id;
    if (quoted.size() != 3) continue;
    const std::vector<std::string> before = absl::StrSplit(quoted[0], ',');
    const std::vector<std::string> after = absl::StrSplit(quoted[2], ',');
    if (!absl::SimpleAtoi(before[0], &id)) continue;
    const std::vector<std::string> labels = absl::StrSplit(before[2], '-');
    Extents extents;
    const std::vector<std::string> pairs =
        absl::StrSplit(after[type == ElementType::kFloat32 ? 1 : 2], ' ');
    for (const std::string& pair : pairs) {
      int64_t extent;
      if (absl::SimpleAtoi(pair.substr(2), &extent)) extents[pair[0]] = extent;
    }
    cases.push_back(
        {id,
         before[1],
         {labels[0], labels[1], labels[2], Scaled(id, std::move(extents))}});
  }
  return cases;
}

OperandDesc OperandOf(const std::string& labels, const Extents& extents,
                      ElementType type) {
  OperandDesc operand{.element_type = type};
  ModeVector sizes;
  for (const char label : labels) {
    operand.modes.push_back(label);
    sizes.push_back(extents.at(label));
  }
  operand.layout = PackedLayout(sizes, Order::kFirstModeFastest);
  return operand;
}

/// A contraction ready to run, with operands full of ones.
class Prepared {
 public:
  Prepared(Backend& backend, const Contraction& contraction, ElementType type) {
    const ContractionDesc desc{
        .a = OperandOf(contraction.a, contraction.extents, type),
        .b = OperandOf(contraction.b, contraction.extents, type),
        .c = std::nullopt,
        .d = OperandOf(contraction.d, contraction.extents, type),
        .compute_type = type == ElementType::kFloat32 ? ComputeType::kFloat32
                                                      : ComputeType::kFloat64};
    const ContractionProblem problem = Canonicalize(desc);
    for (const auto& kernel : backend.kernels().contraction) {
      auto solution = kernel->Solve(problem);
      if (!solution.ok()) continue;
      if (solution_ == nullptr || (*solution)->predicted_nanoseconds() <
                                      solution_->predicted_nanoseconds()) {
        kernel_ = kernel.get();
        solution_ = *std::move(solution);
      }
    }
    a_ = Filled(backend, ElementCount(desc.a.layout), type);
    b_ = Filled(backend, ElementCount(desc.b.layout), type);
    d_ = Filled(backend, ElementCount(desc.d.layout), type);
    workspace_ =
        Filled(backend, solution_->workspace_bytes() / SizeOf(type), type);
    stream_ = backend.CreateStream().value();
  }

  /// Seconds of one execution.
  double Run() {
    Workspace workspace(
        {workspace_.data(), static_cast<size_t>(workspace_.bytes())});
    const auto start = std::chrono::steady_clock::now();
    const absl::Status status = solution_->Launch(
        {.a = a_.data(), .b = b_.data(), .d = d_.data()}, workspace, *stream_);
    status_.Update(status);
    status_.Update(stream_->Synchronize());
    return Seconds(std::chrono::steady_clock::now() - start);
  }

  const absl::Status& status() const { return status_; }
  absl::string_view kernel_name() const { return kernel_->name(); }

 private:
  static Buffer Filled(Backend& backend, int64_t count, ElementType type) {
    Buffer buffer =
        Buffer::Allocate(backend.memory(), count * SizeOf(type)).value();
    if (type == ElementType::kFloat32) {
      std::fill_n(reinterpret_cast<float*>(buffer.data()), count, 1.0f);
    } else {
      std::fill_n(reinterpret_cast<double*>(buffer.data()), count, 1.0);
    }
    return buffer;
  }

  const ContractionKernel* kernel_ = nullptr;
  std::unique_ptr<const ContractionSolution> solution_;
  Buffer a_, b_, d_, workspace_;
  std::unique_ptr<Stream> stream_;
  absl::Status status_;
};

/// The best flops per second of square products so far.
class Peak {
 public:
  Peak(Backend& backend, ElementType type) : square_(backend, Square(), type) {}

  double Measure() {
    best_ = std::max(best_, Square().flops() / square_.Run());
    return best_;
  }

 private:
  static Contraction Square() {
    return {"ab", "ac", "cb", {{'a', 2048}, {'b', 2048}, {'c', 2048}}};
  }

  Prepared square_;
  double best_ = 0;
};

void RunCase(benchmark::State& state, Backend& backend, Peak& peak,
             const BenchCase& bench_case, ElementType type) {
  Prepared prepared(backend, bench_case.contraction, type);
  prepared.Run();
  peak.Measure();
  double best = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    const double seconds = prepared.Run();
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
  }
  const double peak_flops_per_second = peak.Measure();
  if (!prepared.status().ok()) {
    state.SkipWithError(std::string(prepared.status().message()).c_str());
    return;
  }
  const double reached = bench_case.contraction.flops() / best;
  state.counters["GFLOP/s"] = reached / 1e9;
  state.counters["of_peak"] = reached / peak_flops_per_second;
  state.SetLabel(std::string(prepared.kernel_name()));
}

}  // namespace
}  // namespace tensord::core

int main(int argc, char** argv) {
  namespace core = tensord::core;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const auto backend = core::CreateCpuBackend({});
  benchmark::AddCustomContext("cpu", backend->info().model);
  for (const auto& [key, value] : backend->info().properties) {
    benchmark::AddCustomContext(key, value);
  }
  std::map<core::ElementType, core::Peak> peaks;
  for (const core::ElementType type :
       {core::ElementType::kFloat32, core::ElementType::kFloat64}) {
    core::Peak& peak = peaks.try_emplace(type, *backend, type).first->second;
    for (const core::BenchCase& bench_case :
         core::ReadCases(TENSORD_BENCHMARK_DATA "/tccg48.csv", type)) {
      const std::string name =
          absl::StrFormat("TCCG/%s/%s/%02d", std::string(core::NameOf(type)),
                          bench_case.group, bench_case.id);
      benchmark::RegisterBenchmark(
          name.c_str(),
          [&, bench_case, type](benchmark::State& state) {
            core::RunCase(state, *backend, peak, bench_case, type);
          })
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond)
          ->MinTime(0.2);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}
