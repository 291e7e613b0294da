#include "core/backend/cpu/gemm/gemm_strategy.h"

#include <cstdint>
#include <map>
#include <string>

#include "core/ops/contraction.h"
#include "gtest/gtest.h"
#include "tests/testing/operands.h"

namespace tensord::core {
namespace {

using tensord::test::PackedBy;
using Extents = std::map<char, int64_t>;

ContractionProblem Problem(const std::string& a, const std::string& b,
                           const std::string& d, const Extents& extents,
                           ElementType type = ElementType::kFloat32,
                           ComputeType compute = ComputeType::kFloat32) {
  return Canonicalize(ContractionDesc{.a = PackedBy(extents, type, a),
                                      .b = PackedBy(extents, type, b),
                                      .c = std::nullopt,
                                      .d = PackedBy(extents, type, d),
                                      .compute_type = compute});
}

double Products(const GemmStrategy& s) {
  return static_cast<double>(ElementCount(s.loops)) *
         static_cast<double>(ElementCount(s.k_loops)) *
         static_cast<double>(s.product.m) * static_cast<double>(s.product.n) *
         static_cast<double>(s.product.k);
}

TEST(IsMatrixTest, OneModeIsContiguousAndLinesDoNotOverlap) {
  EXPECT_TRUE(IsMatrix(3, 4, 1, 3));
  EXPECT_TRUE(IsMatrix(3, 4, 1, 10));
  EXPECT_TRUE(IsMatrix(3, 4, 4, 1));
  EXPECT_TRUE(IsMatrix(1, 4, 0, 7));
  EXPECT_TRUE(IsMatrix(3, 1, 7, 0));
  EXPECT_FALSE(IsMatrix(3, 4, 2, 6));
  EXPECT_FALSE(IsMatrix(3, 4, 1, 2));
  EXPECT_FALSE(IsMatrix(3, 4, 1, int64_t{1} << 31));
}

TEST(GemmStrategyTest, PlainMatricesAreMultipliedWhereTheyAre) {
  const GemmStrategy s = ChooseGemmStrategy(
      Problem("ik", "kj", "ij", {{'i', 200}, {'j', 300}, {'k', 400}}), {});
  EXPECT_FALSE(s.a.needed || s.b.needed || s.d.needed);
  EXPECT_EQ(s.product, (MatrixProduct{.m = 200,
                                      .n = 300,
                                      .k = 400,
                                      .a_m = 1,
                                      .a_k = 200,
                                      .b_k = 1,
                                      .b_n = 400,
                                      .d_m = 1,
                                      .d_n = 200}));
  EXPECT_TRUE(s.loops.empty());
  EXPECT_TRUE(s.k_loops.empty());
  EXPECT_EQ(s.k_parts, 1);
}

TEST(GemmStrategyTest, NeighbouringModesFoldIntoOneMatrix) {
  const GemmStrategy s = ChooseGemmStrategy(
      Problem(
          "ijkl", "klmn", "ijmn",
          {{'i', 20}, {'j', 30}, {'k', 25}, {'l', 15}, {'m', 12}, {'n', 35}}),
      {});
  EXPECT_FALSE(s.a.needed || s.b.needed || s.d.needed);
  EXPECT_EQ(s.product.m, 600);
  EXPECT_EQ(s.product.n, 420);
  EXPECT_EQ(s.product.k, 375);
}

TEST(GemmStrategyTest, SplitRowsAreLoopedOverRatherThanCopied) {
  // d's rows a and c lie around its column b.
  const GemmStrategy s =
      ChooseGemmStrategy(Problem("akc", "kb", "abc",
                                 {{'a', 96}, {'b', 84}, {'c', 300}, {'k', 96}}),
                         {});
  EXPECT_FALSE(s.a.needed || s.b.needed || s.d.needed);
  EXPECT_EQ(s.product.m, 96);
  EXPECT_EQ(s.product.n, 84);
  ASSERT_EQ(s.loops.size(), 1);
  EXPECT_EQ(s.loops[0].extent, 300);
}

TEST(GemmStrategyTest, BatchModesAreLoopedOver) {
  const GemmStrategy s = ChooseGemmStrategy(
      Problem("ikz", "kjz", "ijz", {{'i', 64}, {'j', 64}, {'k', 64}, {'z', 9}}),
      {});
  ASSERT_EQ(s.loops.size(), 1);
  EXPECT_EQ(s.loops[0], (LoopMode<3>{9, {64 * 64, 64 * 64, 64 * 64}}));
}

TEST(GemmStrategyTest, OperandsStoredInOtherTypesAreCopied) {
  const Extents extents = {{'i', 64}, {'j', 64}, {'k', 64}};
  const GemmStrategy half = ChooseGemmStrategy(
      Problem("ik", "kj", "ij", extents, ElementType::kFloat16), {});
  EXPECT_TRUE(half.a.needed && half.b.needed && half.d.needed);
  EXPECT_EQ(half.type, ElementType::kFloat32);
  const GemmStrategy narrow = ChooseGemmStrategy(
      Problem("ik", "kj", "ij", extents, ElementType::kComplex128), {});
  EXPECT_TRUE(narrow.a.needed && narrow.b.needed && narrow.d.needed);
  EXPECT_EQ(narrow.type, ElementType::kComplex64);
  EXPECT_EQ(narrow.rounding, OperandRounding::kFloat32);
}

TEST(GemmStrategyTest, RoundedOperandsAreCopiedAndTheResultIsNot) {
  const GemmStrategy s = ChooseGemmStrategy(
      Problem("ik", "kj", "ij", {{'i', 64}, {'j', 64}, {'k', 64}},
              ElementType::kFloat32, ComputeType::kTf32),
      {});
  EXPECT_TRUE(s.a.needed && s.b.needed);
  EXPECT_FALSE(s.d.needed);
  EXPECT_EQ(s.rounding, OperandRounding::kTf32);
}

TEST(GemmStrategyTest, ModesOfOneInputAreSummedIntoItsCopy) {
  const GemmStrategy s = ChooseGemmStrategy(
      Problem("ikx", "kj", "ij", {{'i', 64}, {'j', 64}, {'k', 64}, {'x', 5}}),
      {});
  EXPECT_TRUE(s.a.needed);
  EXPECT_FALSE(s.b.needed);
  EXPECT_EQ(s.a.element_count, 64 * 64);
}

TEST(GemmStrategyTest, LongSumsAreDoneInPartsWhateverTheThreads) {
  const ContractionProblem dot = Problem("k", "k", "", {{'k', 1 << 20}});
  const GemmStrategy one = ChooseGemmStrategy(dot, {.thread_count = 1});
  GemmStrategy many = ChooseGemmStrategy(dot, {.thread_count = 64});
  EXPECT_GT(one.k_parts, 4);
  EXPECT_TRUE(one.d.needed);
  many.nanoseconds = one.nanoseconds;
  EXPECT_EQ(one, many);
}

TEST(GemmStrategyTest, LinesFurtherApartThanBlasCanSayAreLoopedOver) {
  ContractionProblem problem;
  const int64_t far = int64_t{1} << 33;
  problem.m = {{1 << 20, {1, 1, 1}}};
  problem.n = {{2, {1, far, far}}};
  problem.k = {{2, {far, far * 2}}};
  const GemmStrategy s = ChooseGemmStrategy(problem, {.bytes_per_ns = 1e-6});
  EXPECT_TRUE(IsMatrix(s.product.m, s.product.n, s.product.d_m, s.product.d_n));
  EXPECT_EQ(Products(s), 4.0 * (1 << 20));
}

TEST(GemmStrategyTest, DearCopiesMakeLoopsAndCheapOnesDoNot) {
  const ContractionProblem problem = Problem(
      "akc", "kb", "abc", {{'a', 24}, {'b', 20}, {'c', 400}, {'k', 24}});
  const GemmStrategy looped =
      ChooseGemmStrategy(problem, {.bytes_per_ns = 0.001});
  EXPECT_FALSE(looped.a.needed || looped.b.needed || looped.d.needed);
  EXPECT_EQ(Products(looped), 24.0 * 20 * 400 * 24);
}

}  // namespace
}  // namespace tensord::core
