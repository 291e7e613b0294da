// Element-wise operations and reductions on the CPU against the bandwidth of
// memory.
//
// Counters
//   GB/s     bytes read and written a second, of the best iteration
//   of_copy  element-wise: ratio to the bandwidth of a streaming copy
//   of_read  reduction: ratio to the bandwidth of reading
//            both on the same threads, measured before each iteration; median
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/cpu/elementwise_fused.h"
#include "core/backend/cpu/reduction/reduction_pairwise.h"
#include "core/device/host_stream.h"
#include "core/memory/host_resource.h"
#include "tests/benchmarks/bandwidth.h"

namespace tensord::test {
namespace {

constexpr int64_t kOperandBytes = int64_t{192} << 20;

struct Memory {
  core::HostResource resource;
  core::Buffer a, c, d, workspace;

  Memory() {
    for (core::Buffer* buffer : {&a, &c, &d, &workspace}) {
      const int64_t bytes = buffer == &workspace ? 64 << 20 : kOperandBytes;
      *buffer = core::Buffer::Allocate(resource, bytes).value();
      std::memset(buffer->data(), 0, bytes);
    }
  }
};

core::OperandDesc Operand(core::ElementType type, const core::Modes& modes,
                          const core::ModeVector& extents) {
  core::OperandDesc operand{.element_type = type, .layout = {}, .modes = modes};
  operand.layout = core::PackedLayout(extents, core::Order::kFirstModeFastest);
  return operand;
}

/// Runs `launch`, which moves `bytes`, against `limit`, which gives bytes a
/// second.
void Compare(benchmark::State& state, const char* counter, double bytes,
             const std::function<absl::Status()>& launch,
             const std::function<double()>& limit) {
  double best = 1e9;
  std::vector<double> ratios;
  if (!launch().ok()) state.SkipWithError("the kernel failed");
  for (auto _ : state) {
    const double limit_rate = limit();
    const auto start = std::chrono::steady_clock::now();
    if (!launch().ok()) state.SkipWithError("the kernel failed");
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
    ratios.push_back(bytes / seconds / limit_rate);
  }
  std::sort(ratios.begin(), ratios.end());
  state.counters["GB/s"] = bytes / best / 1e9;
  state.counters[counter] = ratios[ratios.size() / 2];
}

/// d = op(unary(a), c)
void Join(benchmark::State& state, Memory& memory, core::ThreadPool& threads,
          core::ElementType type, const core::Modes& modes_a,
          core::UnaryOperator unary, core::BinaryOperator op) {
  const int64_t side = 6144;  // 144 MiB of float32
  core::ElementwiseDesc desc{.a = Operand(type, modes_a, {side, side}),
                             .b = std::nullopt,
                             .c = Operand(type, {'i', 'j'}, {side, side}),
                             .d = Operand(type, {'i', 'j'}, {side, side}),
                             .op_abc = op};
  desc.a.unary = unary;
  if (core::IsComparison(op)) desc.d.element_type = core::ElementType::kBool;
  const core::ElementwiseProblem problem = core::Canonicalize(desc);
  const auto kernel = core::CreateFusedElementwise(threads);
  const auto solution = kernel->Solve(problem).value();
  core::HostStream stream;
  core::Workspace workspace({});
  const int64_t bytes = side * side * core::SizeOf(type);
  const int64_t bytes_d = side * side * core::SizeOf(desc.d.element_type);
  Compare(
      state, "of_copy", 2.0 * bytes + bytes_d,
      [&] {
        return solution->Launch(
            {.a = memory.a.data(), .c = memory.c.data(), .d = memory.d.data()},
            workspace, stream);
      },
      [&] {
        return 2.0 * bytes /
               SecondsToCopy(memory.a.data(), memory.d.data(), bytes, threads);
      });
}

/// Sums a (i, j, k) over the modes that `kept` lacks.
void Sum(benchmark::State& state, Memory& memory, core::ThreadPool& threads,
         const core::Modes& kept, core::BinaryOperator op) {
  const core::ElementType type = core::ElementType::kFloat32;
  const core::ModeVector extents = {512, 256, 384};  // 192 MiB
  core::ModeVector kept_extents;
  for (const core::Mode mode : kept)
    kept_extents.push_back(extents[mode - 'i']);
  const core::ReductionDesc desc{.a = Operand(type, {'i', 'j', 'k'}, extents),
                                 .c = std::nullopt,
                                 .d = Operand(type, kept, kept_extents),
                                 .op = op};
  const core::ReductionProblem problem = core::Canonicalize(desc);
  const auto kernel = core::CreatePairwiseReduction(threads);
  const auto solution = kernel->Solve(problem).value();
  core::HostStream stream;
  Compare(
      state, "of_read", static_cast<double>(kOperandBytes),
      [&] {
        core::Workspace workspace(
            {memory.workspace.data(),
             static_cast<size_t>(memory.workspace.bytes())});
        return solution->Launch({.a = memory.a.data(), .d = memory.d.data()},
                                workspace, stream);
      },
      [&] {
        return kOperandBytes /
               SecondsToRead(memory.a.data(), kOperandBytes, threads);
      });
}

void Register(const std::string& name,
              std::function<void(benchmark::State&)> run) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(run))
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond)
      ->Iterations(9);
}

}  // namespace
}  // namespace tensord::test

int main(int argc, char** argv) {
  using namespace tensord;  // NOLINT: main alone
  using core::BinaryOperator, core::ElementType, core::Modes,
      core::UnaryOperator;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const int thread_count = core::CreateCpuBackend({})->info().thread_count;
  benchmark::AddCustomContext("threads", std::to_string(thread_count));
  core::ThreadPool threads(thread_count);
  test::Memory memory;

  const auto join = [&](const std::string& name, ElementType type,
                        Modes modes_a, UnaryOperator unary, BinaryOperator op) {
    test::Register("Elementwise/" + name, [&, type, modes_a, unary,
                                           op](benchmark::State& state) {
      test::Join(state, memory, threads, type, modes_a, unary, op);
    });
  };
  const auto add = [&](const std::string& name, ElementType type, Modes modes_a,
                       UnaryOperator unary) {
    join(name, type, std::move(modes_a), unary, BinaryOperator::kAdd);
  };
  add("float32/same_order", ElementType::kFloat32, {'i', 'j'},
      UnaryOperator::kIdentity);
  add("float32/transposed", ElementType::kFloat32, {'j', 'i'},
      UnaryOperator::kIdentity);
  add("float32/relu", ElementType::kFloat32, {'i', 'j'}, UnaryOperator::kRelu);
  add("float32/tanh", ElementType::kFloat32, {'i', 'j'}, UnaryOperator::kTanh);
  add("float16/same_order", ElementType::kFloat16, {'i', 'j'},
      UnaryOperator::kIdentity);
  for (const auto op :
       {BinaryOperator::kMul, BinaryOperator::kDiv, BinaryOperator::kPow,
        BinaryOperator::kLess, BinaryOperator::kEqual}) {
    join("float32/" + std::string(core::NameOf(op)), ElementType::kFloat32,
         {'i', 'j'}, UnaryOperator::kIdentity, op);
  }

  const auto sum = [&](const std::string& name, Modes kept, BinaryOperator op) {
    test::Register("Reduction/float32/" + name,
                   [&, kept, op](benchmark::State& state) {
                     test::Sum(state, memory, threads, kept, op);
                   });
  };
  sum("sum/all", {}, BinaryOperator::kAdd);
  sum("sum/fastest", {'j', 'k'}, BinaryOperator::kAdd);
  sum("sum/middle", {'i', 'k'}, BinaryOperator::kAdd);
  sum("sum/slowest", {'i', 'j'}, BinaryOperator::kAdd);
  sum("sum/fastest_and_slowest", {'j'}, BinaryOperator::kAdd);
  sum("max/fastest", {'j', 'k'}, BinaryOperator::kMax);
  sum("max/slowest", {'i', 'j'}, BinaryOperator::kMax);
  benchmark::RunSpecifiedBenchmarks();
}
