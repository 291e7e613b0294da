#include <random>

#include "absl/hash/hash.h"
#include "core/problem/contraction_problem.h"
#include "core/problem/elementwise_problem.h"
#include "core/problem/permutation_problem.h"
#include "core/problem/reduction_problem.h"
#include "gtest/gtest.h"
#include "tests/testing/element_types.h"
#include "tests/testing/operands.h"
#include "tests/testing/random_problem.h"

namespace tensord::core {
namespace {

using tensord::test::Packed;
using tensord::test::Strided;

using tensord::test::kC64;
using tensord::test::kF32;

Mode OtherLabel(Mode mode) { return 5 * mode + 1000; }

/// The operand under other labels and with its modes in another order.
void Disguise(OperandDesc& operand, std::mt19937& rng) {
  for (size_t i = operand.modes.size(); i-- > 1;) {
    const size_t j = rng() % (i + 1);
    std::swap(operand.modes[i], operand.modes[j]);
    std::swap(operand.layout.extents[i], operand.layout.extents[j]);
    std::swap(operand.layout.strides[i], operand.layout.strides[j]);
  }
  for (Mode& mode : operand.modes) mode = OtherLabel(mode);
}

template <typename Desc>
Desc Disguised(Desc desc, std::mt19937& rng) {
  Disguise(desc.a, rng);
  if constexpr (requires { desc.b.modes; }) {
    Disguise(desc.b, rng);
  } else if constexpr (requires { desc.b; }) {
    if (desc.b) Disguise(*desc.b, rng);
  }
  // c's modes must stay in the order of d's, so both follow the same draw.
  const std::mt19937 as_d = rng;
  Disguise(desc.d, rng);
  if constexpr (requires { desc.c.modes; }) {
    Disguise(desc.c, rng);
  } else if constexpr (requires { desc.c; }) {
    std::mt19937 same = as_d;
    if (desc.c) Disguise(*desc.c, same);
  }
  if constexpr (requires { desc.along; }) {
    if (desc.along) desc.along->mode = OtherLabel(desc.along->mode);
  }
  return desc;
}

template <typename Draw>
void ExpectLabelsAndOrderDoNotMatter(Draw&& draw) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const auto desc = draw(rng).desc;
    const auto other = Disguised(desc, rng);
    ASSERT_TRUE(Validate(other).ok()) << Validate(other);
    const auto problem = Canonicalize(desc);
    ASSERT_EQ(Canonicalize(other), problem);
    ASSERT_EQ(absl::HashOf(Canonicalize(other)), absl::HashOf(problem));
  }
}

TEST(CanonicalizeTest, PermutationsThatDifferInLabelsAndOrderAreEqual) {
  ExpectLabelsAndOrderDoNotMatter(tensord::test::RandomPermutation);
}
TEST(CanonicalizeTest, ElementwiseThatDifferInLabelsAndOrderAreEqual) {
  ExpectLabelsAndOrderDoNotMatter(tensord::test::RandomElementwise);
}
TEST(CanonicalizeTest, ReductionsThatDifferInLabelsAndOrderAreEqual) {
  ExpectLabelsAndOrderDoNotMatter(tensord::test::RandomReduction);
}
TEST(CanonicalizeTest, ContractionsThatDifferInLabelsAndOrderAreEqual) {
  ExpectLabelsAndOrderDoNotMatter(tensord::test::RandomContraction);
}

TEST(CanonicalizeTest, AlongAModeNothingFuses) {
  ReductionDesc sums{.a = Packed(kF32, "ijk", {4, 5, 6}),
                     .c = {},
                     .d = Packed(kF32, "ijk", {4, 5, 6})};
  const ReductionProblem copy = Canonicalize(sums);
  EXPECT_EQ(copy.kept.size(), 1u);
  sums.along = Along{'j'};
  const ReductionProblem along = Canonicalize(sums);
  EXPECT_EQ(along.kept.size(), 2u);
  EXPECT_EQ(along.along, (LoopMode<3>{5, {4, 4, 4}}));
  // Of one element it is that, and of none nothing.
  sums.a = sums.d = Packed(kF32, "ijk", {4, 1, 6});
  EXPECT_FALSE(Canonicalize(sums).is_along());
  sums.a = sums.d = Packed(kF32, "ijk", {4, 0, 6});
  EXPECT_EQ(ElementCount(Canonicalize(sums).kept), 0);
}

TEST(CanonicalizeTest, WhatSortsHasNoOperator) {
  ReductionDesc sorted{.a = Packed(kF32, "ij", {1, 5}, UnaryOperator::kConj),
                       .c = {},
                       .d = Packed(ElementType::kInt64, "ij", {1, 5}),
                       .op = BinaryOperator::kMax,
                       .compute_type = ComputeType::kInteger,
                       .along = Along{'i', Sorting::kAscending}};
  const ReductionProblem problem = Canonicalize(sorted);
  EXPECT_EQ(problem.along.extent, 1);
  EXPECT_EQ(problem.compute_element(), ElementType::kInt64);
  sorted.op = BinaryOperator::kMin;
  sorted.a.unary = UnaryOperator::kIdentity;
  EXPECT_EQ(Canonicalize(sorted), problem);
  sorted.along->sorting = Sorting::kDescending;
  EXPECT_NE(Canonicalize(sorted), problem);
}

// B1.7
TEST(CanonicalizeTest, ModesThatStayTogetherFuse) {
  const PermutationProblem three =
      Canonicalize(PermutationDesc{.a = Packed(kF32, "abc", {4, 5, 6}),
                                   .d = Packed(kF32, "cab", {6, 4, 5})});
  const PermutationProblem two = Canonicalize(PermutationDesc{
      .a = Packed(kF32, "ij", {20, 6}), .d = Packed(kF32, "ji", {6, 20})});
  EXPECT_EQ(three, two);
  EXPECT_EQ(three.modes.size(), 2u);
  EXPECT_EQ(three.modes[0].strides[PermutationProblem::kD], 1);
}

TEST(CanonicalizeTest, ConjugationOfRealNumbersIsTheIdentity) {
  const PermutationDesc plain{.a = Packed(kF32, "i", {4}),
                              .d = Packed(kF32, "i", {4})};
  PermutationDesc conj = plain;
  conj.a.unary = UnaryOperator::kConj;
  EXPECT_EQ(Canonicalize(plain), Canonicalize(conj));
  conj.a.element_type = conj.d.element_type = kC64;
  EXPECT_EQ(Canonicalize(conj).unary, UnaryOperator::kConj);
}

TEST(CanonicalizeTest, AlignmentMattersWhereBitsAreMoved) {
  PermutationDesc desc{.a = Packed(kF32, "i", {4}),
                       .d = Packed(kF32, "i", {4})};
  const PermutationProblem unknown = Canonicalize(desc);
  EXPECT_FALSE(unknown.is_move);
  desc.a.alignment_bytes = 4;
  EXPECT_EQ(Canonicalize(desc), unknown);
  desc.alpha_is_one = true;
  EXPECT_TRUE(Canonicalize(desc).is_move);
  EXPECT_EQ(Canonicalize(desc).alignment_bytes, 4);
  desc.a.alignment_bytes = 256;
  EXPECT_EQ(Canonicalize(desc).alignment_bytes, 16);
  desc.a.unary = UnaryOperator::kNeg;
  EXPECT_FALSE(Canonicalize(desc).is_move);
}

TEST(CanonicalizeTest, FirstOperatorDoesNotMatterWithoutB) {
  ElementwiseDesc desc{.a = Packed(kF32, "i", {4}),
                       .b = std::nullopt,
                       .c = Packed(kF32, "i", {4}),
                       .d = Packed(kF32, "i", {4})};
  const ElementwiseProblem add = Canonicalize(desc);
  desc.op_ab = BinaryOperator::kMul;
  EXPECT_EQ(Canonicalize(desc), add);
  EXPECT_FALSE(add.has_b);
}

TEST(CanonicalizeTest, ContractionSortsModesIntoTheirGroups) {
  const ContractionProblem problem = Canonicalize(ContractionDesc{
      .a = Packed(kC64, "bmkx", {2, 3, 4, 6}, UnaryOperator::kConj),
      .b = Packed(kC64, "kybn", {4, 7, 2, 5}),
      .c = std::nullopt,
      .d = Packed(kC64, "nbm", {5, 2, 3})});
  EXPECT_EQ(problem.batch, (LoopModes<4>{{2, {1, 28, 5, 5}}}));
  EXPECT_EQ(problem.m, (LoopModes<3>{{3, {2, 10, 10}}}));
  EXPECT_EQ(problem.n, (LoopModes<3>{{5, {56, 1, 1}}}));
  EXPECT_EQ(problem.k, (LoopModes<2>{{4, {6, 1}}}));
  EXPECT_EQ(problem.a_only, (LoopModes<1>{{6, {24}}}));
  EXPECT_EQ(problem.b_only, (LoopModes<1>{{7, {4}}}));
  EXPECT_TRUE(problem.conj_a);
  EXPECT_FALSE(problem.conj_b);
}

TEST(CanonicalizeTest, EmptySumKeepsItsGroup) {
  const ContractionProblem product =
      Canonicalize(ContractionDesc{.a = Packed(kF32, "mk", {3, 0}),
                                   .b = Packed(kF32, "kn", {0, 5}),
                                   .c = std::nullopt,
                                   .d = Packed(kF32, "mn", {3, 5})});
  EXPECT_EQ(ElementCount(product.k), 0);
  EXPECT_EQ(ElementCount(product.m), 3);
  const ReductionProblem sum =
      Canonicalize(ReductionDesc{.a = Packed(kF32, "ij", {3, 0}),
                                 .c = std::nullopt,
                                 .d = Packed(kF32, "i", {3})});
  EXPECT_EQ(ElementCount(sum.reduced), 0);
  EXPECT_EQ(ElementCount(sum.kept), 3);
}

TEST(CanonicalizeTest, StridesOfTheAddendAreItsOwn) {
  const ReductionDesc desc{.a = Packed(kF32, "ijk", {3, 4, 5}),
                           .c = Strided(kF32, "ij", {3, 4}, {4, 1}),
                           .d = Packed(kF32, "ij", {3, 4})};
  EXPECT_EQ(Canonicalize(desc).kept,
            (LoopModes<3>{{3, {1, 4, 1}}, {4, {3, 1, 3}}}));
  ReductionDesc without = desc;
  without.c = std::nullopt;
  EXPECT_EQ(Canonicalize(without).kept, (LoopModes<3>{{12, {1, 1, 1}}}));
}

TEST(CanonicalizeTest, DifferentProblemsDiffer) {
  const PermutationDesc desc{.a = Packed(kF32, "ij", {4, 5}),
                             .d = Packed(kF32, "ji", {5, 4})};
  const PermutationProblem problem = Canonicalize(desc);
  PermutationDesc other = desc;
  other.compute_type = ComputeType::kFloat64;
  EXPECT_NE(Canonicalize(other), problem);
  other = desc;
  other.a.unary = UnaryOperator::kNeg;
  EXPECT_NE(Canonicalize(other), problem);
  other = desc;
  other.a.layout.strides = {1, 5};
  EXPECT_NE(Canonicalize(other), problem);
  other = desc;
  other.d.element_type = ElementType::kFloat16;
  EXPECT_NE(Canonicalize(other), problem);
}

}  // namespace
}  // namespace tensord::core
