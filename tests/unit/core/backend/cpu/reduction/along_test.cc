// Reductions along modes so long that threads share them.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "core/backend/cpu/reduction/reduction_scan.h"
#include "core/backend/cpu/reduction/reduction_sort.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/device/host_stream.h"
#include "core/memory/host_resource.h"
#include "core/memory/workspace.h"
#include "gtest/gtest.h"

namespace tensord::core {
namespace {

/// What a kernel makes of `a` by its own.
template <typename D, typename A>
std::vector<D> Launched(const ReductionKernel& kernel,
                        const ReductionProblem& problem,
                        const std::vector<A>& a) {
  auto solution = kernel.Solve(problem);
  EXPECT_TRUE(solution.ok()) << solution.status();
  // Aligned, as workspaces are.
  std::vector<uint64_t> memory(
      static_cast<size_t>((*solution)->workspace_bytes()) / 8 +
      kBufferAlignment / 8);
  void* start = memory.data();
  size_t space = memory.size() * 8;
  std::align(kBufferAlignment,
             static_cast<size_t>((*solution)->workspace_bytes()), start, space);
  Workspace workspace({static_cast<std::byte*>(start), space});
  std::vector<D> d(a.size());
  HostStream stream;
  EXPECT_TRUE((*solution)
                  ->Launch({.a = a.data(), .d = d.data()}, workspace, stream)
                  .ok());
  return d;
}

template <typename T>
std::vector<T> RandomNumbers(int64_t count) {
  std::mt19937 rng(7);
  std::vector<T> numbers(static_cast<size_t>(count));
  for (T& number : numbers) {
    // Many are equal.
    number = static_cast<T>(static_cast<int32_t>(rng() % 20'001) - 10'000);
  }
  return numbers;
}

template <typename T>
constexpr ElementType kType =
    std::is_same_v<T, float>    ? ElementType::kFloat32
    : std::is_same_v<T, double> ? ElementType::kFloat64
                                : ElementType::kInt16;

template <typename T>
class SortTest : public ::testing::Test {};
using Sortable = ::testing::Types<float, double, int16_t>;
TYPED_TEST_SUITE(SortTest, Sortable);

TYPED_TEST(SortTest, LongModesAreSortedByAllThreads) {
  for (const int64_t count : {131'073, 500'001}) {
    const auto a = RandomNumbers<TypeParam>(count);
    std::vector<int64_t> expected(a.size());
    std::iota(expected.begin(), expected.end(), 0);
    std::ranges::stable_sort(expected, [&](int64_t i, int64_t j) {
      return a[static_cast<size_t>(i)] < a[static_cast<size_t>(j)];
    });
    const ReductionProblem problem{.type_a = kType<TypeParam>,
                                   .type_d = ElementType::kInt64,
                                   .compute_type = ComputeType::kInteger,
                                   .kept = {},
                                   .reduced = {},
                                   .sorting = Sorting::kAscending,
                                   .along = {count, {1, 1, 1}}};
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      const auto kernel = CreateSortReduction(pool);
      EXPECT_EQ((Launched<int64_t>(*kernel, problem, a)), expected)
          << count << " on " << threads;
    }
  }
}

// One thread goes through a once, several twice, and the bits are the same.
TEST(ScanTest, LongModesGiveTheSameBitsOnAnyThreadCount) {
  std::mt19937 rng(11);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> a(600'000);
  for (float& x : a) x = uniform(rng);
  const auto count = static_cast<int64_t>(a.size());
  const std::vector<ReductionProblem> problems = {
      {.kept = {}, .reduced = {}, .along = {count, {1, 1, 1}}},
      {.kept = {{6, {1, 1, 1}}},
       .reduced = {},
       .along = {count / 6, {6, 6, 6}}},
      {.kept = {{50, {1, 1, 1}}},
       .reduced = {},
       .along = {count / 50, {50, 50, 50}}}};
  for (const ReductionProblem& problem : problems) {
    std::vector<float> expected;
    for (const int threads : {1, 2, 5}) {
      ThreadPool pool(threads);
      const auto kernel = CreateScanReduction(pool);
      const auto sums = Launched<float>(*kernel, problem, a);
      if (threads == 1) expected = sums;
      EXPECT_EQ(std::memcmp(sums.data(), expected.data(),
                            sums.size() * sizeof(float)),
                0)
          << problem.along.extent << " on " << threads;
    }
    double sum = 0;
    const int64_t step = problem.along.strides[0];
    for (int64_t i = 0; i < problem.along.extent; ++i) {
      sum += a[static_cast<size_t>(i * step)];
    }
    const size_t last = static_cast<size_t>((problem.along.extent - 1) * step);
    EXPECT_NEAR(expected[last], sum, 1e-3);
  }
}

}  // namespace
}  // namespace tensord::core
