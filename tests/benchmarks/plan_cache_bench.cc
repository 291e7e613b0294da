// The plan cache: hits, misses, loading and its bound.
//
//   Hit             a key that is there, all threads on one key or on a
//                   thousand
//   HitToLaunched   such a key, and the product of small matrices that it is of
//   Miss            planning by the cost models of the CPU's kernels; the
//                   last of rank 12
//   Load            a snapshot of 100 000 records, read into a cache
//   Resolve         a record that was loaded, made a plan on first use
//   InsertMillion   a million plans through a bound of 64 MiB
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/device/host_stream.h"
#include "core/executor/executor.h"
#include "core/memory/host_resource.h"
#include "core/plan/plan_cache.h"
#include "core/plan/plan_record.h"
#include "core/plan/plan_snapshot.h"
#include "core/plan/planner.h"
#include "tests/testing/operands.h"

namespace tensord::test {
namespace {

constexpr auto kF32 = core::ElementType::kFloat32;
constexpr const char* kDevice = "cpu:0 AVX3_ZEN4";

const core::Backend& Cpu() {
  static const auto& backend = *core::CreateCpuBackend({}).release();
  return backend;
}

core::PlanKey KeyOf(core::AnyProblem problem) {
  return {.problem = std::move(problem), .device = kDevice};
}

core::PlanKey Permutation(int64_t extent = 24) {
  return KeyOf(core::Canonicalize(
      core::PermutationDesc{.a = Packed(kF32, "abcd", {extent, 16, 24, 32}),
                            .d = Packed(kF32, "dbca", {32, 16, 24, extent}),
                            .alpha_is_one = true}));
}

core::PlanKey Elementwise() {
  return KeyOf(core::Canonicalize(
      core::ElementwiseDesc{.a = Packed(kF32, "abc", {24, 16, 32}),
                            .b = Packed(kF32, "cab", {32, 24, 16}),
                            .c = Packed(kF32, "bca", {16, 32, 24}),
                            .d = Packed(kF32, "bca", {16, 32, 24})}));
}

core::PlanKey Reduction() {
  return KeyOf(core::Canonicalize(
      core::ReductionDesc{.a = Packed(kF32, "abcd", {24, 16, 24, 32}),
                          .c = std::nullopt,
                          .d = Packed(kF32, "ca", {24, 24})}));
}

// abcdef-dega-gfbc of the TCCG benchmark, with a batch mode.
core::PlanKey Contraction(int64_t extent = 24) {
  return KeyOf(core::Canonicalize(core::ContractionDesc{
      .a = Packed(kF32, "degaz", {24, 16, 24, extent, 8}),
      .b = Packed(kF32, "gfbcz", {24, 16, 24, 20, 8}),
      .c = std::nullopt,
      .d = Packed(kF32, "abcdefz", {extent, 24, 20, 24, 16, 16, 8})}));
}

// Of rank 12, reversed: no two of its modes fuse.
core::PlanKey HighRankPermutation() {
  core::ModeVector extents = {2, 3, 4, 3, 2, 2, 3, 2, 20, 18, 22, 24};
  core::PermutationDesc desc{.a = Packed(kF32, "abcdefghijkl", extents),
                             .alpha_is_one = true};
  std::ranges::reverse(extents);
  desc.d = Packed(kF32, "lkjihgfedcba", extents);
  return KeyOf(core::Canonicalize(desc));
}

core::PlanKey KeyOfKind(int64_t kind) {
  switch (kind) {
    case 0: return Permutation();
    case 1: return Elementwise();
    case 2: return Reduction();
    case 3: return Contraction();
    default: return HighRankPermutation();
  }
}

/// A cache with a thousand plans, shared by the threads of a benchmark.
core::PlanCache& Warm(const std::vector<core::PlanKey>& keys) {
  static core::PlanCache& cache = *new core::PlanCache(65536);
  for (const core::PlanKey& key : keys) {
    cache
        .GetOrMake(key,
                   []() -> absl::StatusOr<core::Plan> { return core::Plan{}; })
        .IgnoreError();
  }
  return cache;
}

void Hit(benchmark::State& state) {
  std::vector<core::PlanKey> keys;
  for (int64_t i = 0; i < state.range(1); ++i) {
    keys.push_back(state.range(0) == 0 ? Permutation(100 + i)
                                       : Contraction(100 + i));
  }
  core::PlanCache& cache = Warm(keys);
  const std::string job = "training-7b";
  size_t at = static_cast<size_t>(state.thread_index()) * 7;
  for (auto _ : state) {
    const core::PlanKey& key = keys[at++ % keys.size()];
    const auto lookup = cache.GetOrMake(key,
                                        []() -> absl::StatusOr<core::Plan> {
                                          return absl::InternalError("planned");
                                        },
                                        {.job = job});
    if (!lookup.ok() || !lookup->hit) state.SkipWithError("no hit");
  }
  state.SetLabel(
      absl::StrCat(state.range(0) == 0 ? "permutation" : "contraction", ", ",
                   keys.size(), keys.size() == 1 ? " key" : " keys"));
}
BENCHMARK(Hit)
    ->ArgsProduct({{0, 1}, {1, 1000}})
    ->Threads(1)
    ->Threads(2)
    ->Threads(8)
    ->UseRealTime();

/// From the key of n x n x n matrices of float64 to their product.
void HitToLaunched(benchmark::State& state) {
  constexpr auto kF64 = core::ElementType::kFloat64;
  const int64_t n = state.range(0);
  const core::PlanKey key = KeyOf(core::Canonicalize(
      core::ContractionDesc{.a = Packed(kF64, "mk", {n, n}),
                            .b = Packed(kF64, "kn", {n, n}),
                            .c = std::nullopt,
                            .d = Packed(kF64, "mn", {n, n}),
                            .compute_type = core::ComputeType::kFloat64}));
  const std::vector<double> ones(static_cast<size_t>(n * n), 1.0);
  std::vector<double> d(static_cast<size_t>(n * n));
  const core::AnyOperands operands = core::ContractionOperands{
      .a = ones.data(), .b = ones.data(), .d = d.data()};
  core::HostStream stream;
  core::PlanCache cache(1000);
  const auto plan = [&] { return core::MakePlan(Cpu(), key); };
  state.SetLabel(std::string(plan()->kernel_name()));
  core::HostResource memory;
  const core::Buffer scratch =
      core::Buffer::Allocate(memory, int64_t{1} << 20).value();
  for (auto _ : state) {
    const auto lookup = cache.GetOrMake(key, plan, {.job = "training-7b"});
    if (!lookup.ok() ||
        !core::Execute(*lookup->plan, operands, scratch, stream).ok()) {
      state.SkipWithError("no product");
    }
    benchmark::ClobberMemory();
  }
  if (d.front() != static_cast<double>(n)) state.SkipWithError("wrong");
}
BENCHMARK(HitToLaunched)->RangeMultiplier(2)->Range(2, 16);

void Encode(benchmark::State& state) {
  const core::PlanKey key = KeyOfKind(state.range(0));
  for (auto _ : state) {
    const core::EncodedPlanKey encoded(key);
    benchmark::DoNotOptimize(core::PlanIdOf(encoded.bytes()));
  }
  state.counters["bytes"] =
      benchmark::Counter(static_cast<double>(core::EncodePlanKey(key).size()),
                         benchmark::Counter::kAvgThreads);
}
BENCHMARK(Encode)->DenseRange(0, 3)->ThreadRange(1, 2)->UseRealTime();

void Miss(benchmark::State& state) {
  const core::PlanKey key = KeyOfKind(state.range(0));
  std::string kernel;
  for (auto _ : state) {
    const auto plan = core::MakePlan(Cpu(), key);
    if (!plan.ok()) state.SkipWithError("no plan");
    kernel = std::string(plan->kernel_name());
  }
  state.SetLabel(kernel);
}
BENCHMARK(Miss)->DenseRange(0, 4)->Unit(benchmark::kMicrosecond);

std::string RecordOf(const core::PlanKey& key) {
  const core::Plan plan = core::MakePlan(Cpu(), key).value();
  return core::EncodePlanRecord(
      {.key = core::EncodePlanKey(key),
       .kernel = std::string(plan.kernel_name()),
       .kernel_version = plan.kernel_version(),
       .predicted_nanoseconds = plan.predicted_nanoseconds(),
       .planning_nanoseconds = 10'000});
}

constexpr int64_t kRecords = 100'000;

void Load(benchmark::State& state) {
  core::SnapshotWriter writer("tensord 0.1.0");
  for (int64_t i = 0; i < kRecords; ++i) {
    writer.Add(RecordOf(i % 2 == 0 ? Permutation(2 + i) : Contraction(2 + i)));
  }
  const std::string snapshot = std::move(writer).Finish();
  int64_t bytes = 0;
  for (auto _ : state) {
    core::PlanCache cache(kRecords);
    const auto info =
        core::ReadSnapshot(snapshot, [&](absl::string_view record) {
          cache.AddRecord(std::string(record));
        });
    if (!info.ok()) state.SkipWithError("the snapshot cannot be read");
    if (cache.statistics().record_count != kRecords) {
      state.SkipWithError("records are missing");
    }
    bytes = cache.statistics().bytes;
  }
  state.counters["snapshot_mb"] = 1e-6 * static_cast<double>(snapshot.size());
  state.counters["cache_mb"] = 1e-6 * static_cast<double>(bytes);
}
BENCHMARK(Load)->Unit(benchmark::kMillisecond);

void Resolve(benchmark::State& state) {
  const core::PlanKey key = KeyOfKind(state.range(0));
  const std::string record = RecordOf(key);
  for (auto _ : state) {
    core::PlanCache cache(1);
    cache.AddRecord(record);
    if (cache.Find(key, {.backend = &Cpu()}) == nullptr) {
      state.SkipWithError("the record does not hold");
    }
  }
}
BENCHMARK(Resolve)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);

void InsertMillion(benchmark::State& state) {
  constexpr int64_t kByteLimit = int64_t{64} << 20;
  core::PlanCacheStatistics statistics;
  for (auto _ : state) {
    core::PlanCache cache({.entry_limit = 2'000'000, .byte_limit = kByteLimit});
    for (int64_t i = 0; i < 1'000'000; ++i) {
      core::PlanKey key = KeyOf(core::PermutationProblem{
          .modes = {{2 + i, {1, 64}}, {64, {2 + i, 1}}}});
      cache
          .GetOrMake(
              key, []() -> absl::StatusOr<core::Plan> { return core::Plan{}; })
          .IgnoreError();
    }
    statistics = cache.statistics();
    if (statistics.bytes > kByteLimit) state.SkipWithError("over the bound");
  }
  state.counters["entries"] = static_cast<double>(statistics.entry_count);
  state.counters["mb"] = 1e-6 * static_cast<double>(statistics.bytes);
}
BENCHMARK(InsertMillion)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace tensord::test

BENCHMARK_MAIN();
