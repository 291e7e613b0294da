// How single threads share contractions on an H200.
#include "core/backend/cuda/contraction/threads_division.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/testing/element_types.h"
#include "tests/unit/core/backend/cuda/h200.h"

namespace tensord::core::cuda {
namespace {

using tensord::test::kF32;

/// d (m, n) of each of `batches` matrices a (k, m) and b (k, n). The batch is
/// the fastest mode of all, or the slowest.
ContractionProblem Products(int64_t m, int64_t n, int64_t k, int64_t batches,
                            bool batch_is_fastest) {
  ContractionProblem problem{.type_a = kF32, .type_b = kF32, .type_d = kF32};
  const int64_t unit = batch_is_fastest ? batches : 1;
  const auto batch = [&](int64_t elements) {
    return batch_is_fastest ? 1 : elements;
  };
  problem.m = Canonical(LoopModes<3>{{m, {k * unit, unit, unit}}}, 2);
  problem.n = Canonical(LoopModes<3>{{n, {k * unit, m * unit, m * unit}}}, 2);
  problem.k = Canonical(LoopModes<2>{{k, {unit, unit}}}, 0);
  problem.batch = Canonical(
      LoopModes<4>{
          {batches, {batch(k * m), batch(k * n), batch(m * n), batch(m * n)}}},
      3);
  return problem;
}

TEST(ThreadsDivisionTest, NeighboursAreWhereMemoryHasThem) {
  // Dot products of columns: threads share the terms.
  const ThreadsDivision columns =
      DivideByThreads(kH200, Products(1, 1, 64, 1 << 20, false), 1);
  EXPECT_GT(columns.log_sharers, 0u);
  // Of rows: each has its own.
  const ThreadsDivision rows =
      DivideByThreads(kH200, Products(1, 1, 64, 1 << 20, true), 1);
  EXPECT_EQ(rows.log_sharers, 0u);
  const ThreadsDivision small =
      DivideByThreads(kH200, Products(16, 16, 16, 1 << 16, true), 4);
  EXPECT_TRUE(small.batch_first);
  EXPECT_EQ(small.log_sharers, 0u);
}

TEST(ThreadsDivisionTest, ThreadsCoverEveryElement) {
  for (const int64_t micro : {1, 4}) {
    for (const int64_t m : {1, 3, 4, 5, 17}) {
      const ThreadsDivision division =
          DivideByThreads(kH200, Products(m, 6, 9, 7, false), micro);
      const int64_t along_m = division.swaps ? 6 : m;
      EXPECT_GE(division.tiles_m * micro, along_m);
      EXPECT_LT((division.tiles_m - 1) * micro, along_m);
      EXPECT_EQ(division.batch_count, 7);
      EXPECT_EQ(division.thread_count(), division.tiles_m * division.tiles_n * 7
                                             << division.log_sharers);
    }
  }
}

TEST(ThreadsDivisionTest, TermsAreSharedByNoMoreThreadsThanThereMayBe) {
  const ThreadsDivision division =
      DivideByThreads(kH200, Products(1, 1, 64, 1 << 27, false), 1);
  EXPECT_LE(division.thread_count(), kMostThreads);
}

TEST(ThreadsDivisionTest, PredictionsAreNoLessThanTheLimits) {
  for (const bool batch_is_fastest : {true, false}) {
    for (const int64_t extent : {1, 4, 16, 64}) {
      constexpr int64_t kBatches = 1 << 16;
      const double elements =
          3.0 * static_cast<double>(extent * extent * kBatches);
      const double products =
          static_cast<double>(extent * extent * extent * kBatches);
      for (const int64_t micro : {1, 4}) {
        EXPECT_GE(DivideByThreads(kH200,
                                  Products(extent, extent, extent, kBatches,
                                           batch_is_fastest),
                                  micro)
                      .nanoseconds,
                  std::max(4 * elements / 4800, products / (132 * 1.98 * 128)));
      }
    }
  }
}

}  // namespace
}  // namespace tensord::core::cuda
