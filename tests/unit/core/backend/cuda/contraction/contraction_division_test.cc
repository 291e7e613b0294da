// How contractions are dealt out on an H200.
#include "core/backend/cuda/contraction/contraction_division.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/backend/cuda/contraction/tile_efficiency.h"
#include "core/backend/cuda/reduction_division.h"
#include "tests/testing/element_types.h"
#include "tests/unit/core/backend/cuda/h200.h"

namespace tensord::core::cuda {
namespace {

using tensord::test::kF32;
constexpr DirectTile kTiles[] = {DirectTile::kLarge, DirectTile::kSquare,
                                 DirectTile::kTall, DirectTile::kTall24,
                                 DirectTile::kDeep};

/// d (m, n) = a (m, k) b (k, n), each packed in that order.
ContractionProblem Product(int64_t m, int64_t n, int64_t k,
                           ElementType type = kF32) {
  ContractionProblem problem{.type_a = type, .type_b = type, .type_d = type};
  problem.m = Canonical(LoopModes<3>{{m, {1, 1, 1}}}, 2);
  problem.n = Canonical(LoopModes<3>{{n, {k, m, m}}}, 2);
  problem.k = Canonical(LoopModes<2>{{k, {m, 1}}}, 0);
  return problem;
}

ContractionDivision Best(const ContractionProblem& problem) {
  ContractionDivision best;
  best.nanoseconds = 1e300;
  for (const DirectTile tile : kTiles) {
    if (tile == DirectTile::kLarge && ArithmeticBytes(problem.type_d) > 4)
      continue;
    for (const bool splits : {false, true}) {
      const ContractionDivision division = Divide(kH200, problem, tile, splits);
      if (division.nanoseconds < best.nanoseconds) best = division;
    }
  }
  return best;
}

TEST(ContractionDivisionTest, TilesFitTheShape) {
  EXPECT_EQ(Best(Product(8192, 8192, 8192)).tile, DirectTile::kLarge);
  EXPECT_EQ(Best(Product(1 << 20, 12, 300)).tile, DirectTile::kTall);
  EXPECT_EQ(Best(Product(1 << 20, 24, 300)).tile, DirectTile::kTall24);
  EXPECT_EQ(Best(Product(1000, 600, 300)).tile, DirectTile::kSquare);
  EXPECT_EQ(Best(Product(1, 1, 1 << 24)).tile, DirectTile::kDeep);
}

TEST(ContractionDivisionTest, TallTilesStandAlongTheLongerSide) {
  const auto tall = [](const ContractionProblem& problem) {
    return Divide(kH200, problem, DirectTile::kTall, false);
  };
  EXPECT_FALSE(tall(Product(1 << 20, 12, 300)).swaps);
  EXPECT_TRUE(tall(Product(12, 1 << 20, 300)).swaps);
}

TEST(ContractionDivisionTest, TilesCoverEveryElement) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 1},
                             {128, 128},
                             {129, 128},
                             {16, 257},
                             {1000, 7}}) {
    for (const DirectTile tile : kTiles) {
      const ContractionDivision division =
          Divide(kH200, Product(m, n, 10), tile, false);
      const DirectTileExtents extents = ExtentsOf(tile, 4);
      const int64_t along_m = division.swaps ? n : m;
      const int64_t along_n = division.swaps ? m : n;
      EXPECT_GE(division.tiles_m * extents.m, along_m);
      EXPECT_LT((division.tiles_m - 1) * extents.m, along_m);
      EXPECT_GE(division.tiles_n * extents.n, along_n);
      EXPECT_LT((division.tiles_n - 1) * extents.n, along_n);
    }
  }
}

TEST(ContractionDivisionTest, LongSumsOfFewElementsAreSplit) {
  const ContractionDivision division = Best(Product(60, 60, 1 << 22));
  EXPECT_GE(division.split_count, 132);
  // All terms are there, and no block is left without.
  EXPECT_GE(division.split_count * division.part, 1 << 22);
  EXPECT_LT((division.split_count - 1) * division.part, 1 << 22);
  EXPECT_EQ(PartialBytes(Product(60, 60, 1 << 22), division),
            division.split_count * 60 * 60 * 4);
}

/// d (i, j, n) = a (j, k, i) b (k, n): a's fastest mode is not d's.
ContractionProblem OfTwoOrders(int64_t i, int64_t j, int64_t n, int64_t k) {
  ContractionProblem problem{.type_a = kF32, .type_b = kF32, .type_d = kF32};
  problem.m = {{i, {j * k, 1, 1}}, {j, {1, i, i}}};
  problem.n = {{n, {k, i * j, i * j}}};
  problem.k = {{k, {j, 1}}};
  return problem;
}

TEST(ContractionDivisionTest, TilesHoldRunsOfBothOrders) {
  ContractionProblem problem = OfTwoOrders(720, 800, 16, 60);
  const ContractionDivision division =
      Divide(kH200, problem, DirectTile::kTall, false);
  EXPECT_FALSE(division.swaps);
  EXPECT_FALSE(division.reading_a.along_k);
  EXPECT_GE(division.m.run_d, 8);
  EXPECT_GE(division.m.run_input, 8);
  EXPECT_EQ(int64_t{1} << division.reading_a.log_d, division.m.run_d);
  EXPECT_EQ(int64_t{1} << division.reading_a.log_input, division.m.run_input);
  // Elements move once.
  EXPECT_LE(division.bytes, 1.01 * 4 * (720 * 800 * (60 + 16) + 60 * 16));
  // Of one order there is none.
  problem.m[0].strides[0] = 1;
  problem.m[1].strides[0] = 720 * 60;
  problem.k[0].strides[0] = 720;
  EXPECT_EQ(Divide(kH200, problem, DirectTile::kTall, false).m.log_d, 0u);
}

TEST(ContractionDivisionTest, VectorsAreReadWhereTheyLieWholeAndAligned) {
  const auto reads_vectors = [](const ContractionProblem& problem) {
    const ContractionDivision division =
        Divide(kH200, problem, DirectTile::kTall24, false);
    EXPECT_FALSE(division.reading_a.along_k);
    return division.reading_a.by_vectors;
  };
  ContractionProblem product = Product(4096, 24, 60);
  EXPECT_FALSE(reads_vectors(product));
  product.alignment_bytes = 16;
  EXPECT_TRUE(reads_vectors(product));
  ContractionProblem odd_extent = product, odd_stride = product;
  odd_extent.m[0].extent = 4094;
  EXPECT_FALSE(reads_vectors(odd_extent));
  odd_stride.k[0].strides[0] = 4098;
  EXPECT_FALSE(reads_vectors(odd_stride));
  odd_stride.k[0].strides[0] = 4100;
  EXPECT_TRUE(reads_vectors(odd_stride));
  // Not of what changes on its way.
  ContractionProblem conjugate = product, rounded = product, half = product;
  conjugate.conj_b = true;
  EXPECT_FALSE(reads_vectors(conjugate));
  rounded.compute_type = ComputeType::kTf32;
  EXPECT_FALSE(reads_vectors(rounded));
  half.type_a = half.type_b = half.type_d = ElementType::kFloat16;
  EXPECT_FALSE(reads_vectors(half));
  odd_stride.batch = {{5, {1 << 20 | 2, 0, 1 << 20, 1 << 20}}};
  EXPECT_FALSE(reads_vectors(odd_stride));

  ContractionProblem two_orders = OfTwoOrders(720, 800, 24, 60);
  EXPECT_FALSE(reads_vectors(two_orders));
  two_orders.alignment_bytes = 16;
  EXPECT_TRUE(reads_vectors(two_orders));
  two_orders = OfTwoOrders(720, 802, 24, 60);
  two_orders.alignment_bytes = 16;
  EXPECT_FALSE(reads_vectors(two_orders));
}

// d (m, n) = a (m, k, l) b (l, k, n): a is read along m, b along l.
TEST(ContractionDivisionTest, TermsComeInTheOrderOfWhatIsReadAlongThem) {
  ContractionProblem problem{.type_a = kF32, .type_b = kF32, .type_d = kF32};
  constexpr int64_t kM = 16, kN = 100'000, kK = 64, kL = 64;
  problem.m = {{kM, {1, 1, 1}}};
  problem.n = {{kN, {kK * kL, kM, kM}}};
  problem.k = {{kK, {kM, kL}}, {kL, {kM * kK, 1}}};
  const ContractionDivision division =
      Divide(kH200, problem, DirectTile::kTall, false);
  const DirectModes modes =
      *DirectModesOf(problem, division.swaps, division.terms);
  EXPECT_EQ(modes.k[0].extent, kL);
  EXPECT_LE(division.bytes, 1.1 * 4 * (kK * kL * (kM + kN) + kM * kN));
}

TEST(ContractionDivisionTest, BlocksMayReachBeyondModes) {
  GpuModel slow = kH200;  // what conformance runs on, too
  slow.memory_bytes_per_ns = 15;
  for (const DirectTile tile : {DirectTile::kLarge, DirectTile::kSquare,
                                DirectTile::kTall, DirectTile::kTall24}) {
    const ContractionProblem problem = OfTwoOrders(17, 33, 7, 9);
    const ContractionDivision division = Divide(slow, problem, tile, false);
    EXPECT_GT(division.m.count, ElementCount(problem.m));
    EXPECT_GT(division.reading_a.log_input, 0u);
  }
}

TEST(ContractionDivisionTest, WhatMayNotSplitIsNotSplit) {
  int split = 0, whole = 0;
  for (const DirectTile tile : kTiles) {
    for (const int64_t m : {1, 60, 700, 5000}) {
      for (const int64_t n : {1, 24, 600}) {
        for (const int64_t k : {1, 100, 130, 4096, 1 << 18}) {
          const ContractionProblem problem = Product(m, n, k);
          const int64_t count = Divide(kH200, problem, tile, true).split_count;
          if (MaySplit(kH200, problem, tile)) {
            split += count > 1;
          } else {
            EXPECT_EQ(count, 1) << m << " " << n << " " << k;
            ++whole;
          }
        }
      }
    }
  }
  EXPECT_GT(split, 50);
  EXPECT_GT(whole, 50);
}

TEST(ContractionDivisionTest, NothingIsSplitWhereItGivesNothing) {
  EXPECT_EQ(Divide(kH200, Product(60, 60, 100), DirectTile::kSquare, true)
                .split_count,
            1);
  EXPECT_EQ(Divide(kH200, Product(8192, 8192, 8192), DirectTile::kLarge, true)
                .split_count,
            1);
}

// A full contraction of an array with its transpose: neither is read badly.
TEST(ContractionDivisionTest, TermsOfTwoOrdersComeInBlocks) {
  ContractionProblem problem{.type_a = kF32, .type_b = kF32, .type_d = kF32};
  constexpr int64_t kSide = 8192;
  problem.k = {{kSide, {1, kSide}}, {kSide, {kSide, 1}}};
  const ContractionDivision division = Best(problem);
  EXPECT_EQ(division.terms, TermOrder::kInBlocks);
  EXPECT_LE(division.bytes, 1.01 * 2 * kSide * kSide * 4);
}

TEST(ContractionDivisionTest, PredictionsAreNoLessThanTheLimits) {
  for (const ContractionProblem& problem :
       {Product(8192, 8192, 8192), Product(1 << 20, 12, 300),
        Product(60, 60, 1 << 22), Product(1, 1, 1 << 24),
        Product(4096, 4096, 4096, ElementType::kFloat64)}) {
    const double m = static_cast<double>(ElementCount(problem.m));
    const double n = static_cast<double>(ElementCount(problem.n));
    const double k = static_cast<double>(ElementCount(problem.k));
    const bool is_wide = problem.type_d == ElementType::kFloat64;
    const double products_per_ns = 132 * 1.98 * (is_wide ? 64 : 128);
    const double bytes = (m * k + k * n + m * n) * (is_wide ? 8 : 4);
    EXPECT_GE(Best(problem).nanoseconds,
              std::max(m * n * k / products_per_ns, bytes / 4800));
  }
}

}  // namespace
}  // namespace tensord::core::cuda
