// What the cache says it takes, against what it takes of the heap.
#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <random>
#include <string>
#include <utility>

#include "absl/base/attributes.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/plan/plan_cache.h"
#include "core/plan/plan_record.h"
#include "core/plan/planner.h"
#include "gtest/gtest.h"
#include "tests/unit/core/plan/cached_plans.h"
#include "tests/unit/core/plan/random_key.h"

namespace {

std::atomic<int64_t> heap_bytes = 0;

int64_t BlockBytes(void* block) {
  return static_cast<int64_t>(malloc_usable_size(block)) + 8;
}

}  // namespace

// Not inlined: the compiler would see malloc() behind delete, and warn.
ABSL_ATTRIBUTE_NOINLINE void* operator new(std::size_t bytes) {
  void* const block = std::malloc(bytes);
  if (block == nullptr) std::abort();
  heap_bytes += BlockBytes(block);
  return block;
}
ABSL_ATTRIBUTE_NOINLINE void* operator new(std::size_t bytes,
                                           const std::nothrow_t&) noexcept {
  return operator new(bytes);
}
ABSL_ATTRIBUTE_NOINLINE void operator delete(void* block) noexcept {
  if (block != nullptr) heap_bytes -= BlockBytes(block);
  std::free(block);
}
ABSL_ATTRIBUTE_NOINLINE void operator delete(void* block,
                                             std::size_t) noexcept {
  operator delete(block);
}

namespace tensord::core {
namespace {

using tensord::test::PlanWith;
using tensord::test::RandomKey;

/// Checks what `fill` puts into a cache: all that it takes is accounted for,
/// and not much more, since hash tables count as just grown.
template <typename Fill>
void ExpectHonest(Fill&& fill) {
  PlanCache cache({.entry_limit = 1'000'000, .byte_limit = int64_t{1} << 40});
  const int64_t before = heap_bytes;
  fill(cache);
  const double taken = static_cast<double>(heap_bytes - before);
  const double said = static_cast<double>(cache.statistics().bytes);
  EXPECT_GT(taken, 1e6);
  EXPECT_GE(said, 0.97 * taken);
  EXPECT_LE(said, 1.35 * taken);
}

TEST(PlanCacheBytesTest, OfPlansAreWhatTheHeapGave) {
  ExpectHonest([](PlanCache& cache) {
    for (uint32_t seed = 0; seed < 5000; ++seed) {
      std::mt19937 rng(seed);
      const PlanKey key = RandomKey(rng);
      ASSERT_TRUE(
          cache
              .GetOrMake(
                  key, [&]() -> absl::StatusOr<Plan> { return PlanWith(seed); })
              .ok());
    }
  });
}

TEST(PlanCacheBytesTest, OfWhatKernelsDecidedAreWhatTheHeapGave) {
  const auto backend = CreateCpuBackend({.thread_count = 2});
  for (size_t operation = 0; operation < std::variant_size_v<AnyProblem>;
       ++operation) {
    SCOPED_TRACE(operation);
    ExpectHonest([&](PlanCache& cache) {
      for (uint32_t seed = 0; seed < 4800; ++seed) {
        std::mt19937 rng(seed);
        PlanKey key = {.problem = RandomKey(rng).problem};
        if (key.problem.index() != operation) continue;
        for (Plan& plan : ListPlans(*backend, key)) {
          key.kernel = std::string(plan.kernel_name());
          ASSERT_TRUE(cache
                          .GetOrMake(key,
                                     [&]() -> absl::StatusOr<Plan> {
                                       return std::move(plan);
                                     })
                          .ok());
        }
      }
    });
  }
}

TEST(PlanCacheBytesTest, OfRecordsAreWhatTheHeapGave) {
  ExpectHonest([](PlanCache& cache) {
    for (int64_t i = 0; i < 20'000; ++i) {
      cache.AddRecord(EncodePlanRecord(
          {.key = EncodePlanKey({.problem = tensord::test::Transpose(2 + i, 5),
                                 .device = "cpu:0 AVX3_ZEN4"}),
           .kernel = "cpu.permute.blocked",
           .kernel_version = 1}));
    }
  });
}

}  // namespace
}  // namespace tensord::core
