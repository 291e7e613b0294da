#include "core/ops/contraction.h"

#include "gtest/gtest.h"
#include "tests/testing/element_types.h"
#include "tests/testing/operands.h"
#include "tests/unit/core/ops/refusal.h"

namespace tensord::core {
namespace {

using tensord::test::IsInvalid;
using tensord::test::IsUnsupported;
using tensord::test::Packed;
using tensord::test::Strided;

using tensord::test::kF32;

ContractionDesc Product() {
  return {.a = Packed(kF32, "mk", {3, 4}),
          .b = Packed(kF32, "kn", {4, 5}),
          .c = Packed(kF32, "mn", {3, 5}),
          .d = Packed(kF32, "mn", {3, 5})};
}

// A4.18
TEST(ContractionTest, EveryClassOfModesIsValid) {
  ContractionDesc desc = Product();
  EXPECT_TRUE(Validate(desc).ok());
  desc = {.a = Packed(kF32, "bmkx", {2, 3, 4, 6}),
          .b = Packed(kF32, "kybn", {4, 7, 2, 5}),
          .c = std::nullopt,
          .d = Packed(kF32, "nbm", {5, 2, 3})};
  EXPECT_TRUE(Validate(desc).ok()) << "batch and modes of one input";
  desc = {.a = Packed(kF32, "m", {3}),
          .b = Packed(kF32, "n", {5}),
          .c = std::nullopt,
          .d = Packed(kF32, "nm", {5, 3})};
  EXPECT_TRUE(Validate(desc).ok()) << "outer product";
  desc = {.a = Packed(kF32, "ij", {3, 4}),
          .b = Packed(kF32, "ji", {4, 3}),
          .c = std::nullopt,
          .d = Packed(kF32, "", {})};
  EXPECT_TRUE(Validate(desc).ok()) << "to a scalar";
}

TEST(ContractionTest, DifferentExtentsNameTheModeAndBoth) {
  ContractionDesc desc = Product();
  desc.b = Packed(kF32, "kn", {64, 5});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_EXTENT_MISMATCH",
                        "mode 'k' has extent 4 in a but 64 in b"));
  desc = Product();
  desc.c = std::nullopt;
  desc.d = Packed(kF32, "mn", {2, 5});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_EXTENT_MISMATCH", "extent 3 in a but 2 in d"));
  desc.d = Packed(kF32, "mn", {3, 6});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_EXTENT_MISMATCH", "extent 5 in b but 6 in d"));
}

TEST(ContractionTest, OutputModeInNeitherInputIsRefused) {
  ContractionDesc desc = Product();
  desc.c = std::nullopt;
  desc.d = Packed(kF32, "mnz", {3, 5, 2});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_NOT_IN_INPUT",
                        "mode 'z' of d is in neither a ('m', 'k') nor b"));
}

TEST(ContractionTest, RepeatedModeIsRefused) {
  ContractionDesc desc = Product();
  desc.a.modes = {'k', 'k'};
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_REPEATED", "twice in a"));
}

// A4.3
TEST(ContractionTest, AddendMustBeLikeTheOutput) {
  ContractionDesc desc = Product();
  desc.c = Strided(kF32, "mn", {3, 5}, {5, 1});
  EXPECT_TRUE(Validate(desc).ok()) << "strides may differ";
  desc.c = Packed(kF32, "nm", {5, 3});
  EXPECT_THAT(Validate(desc), IsInvalid("ADDEND_MISMATCH", "same order"));
}

TEST(ContractionTest, OnlyConjugationIsApplied) {
  ContractionDesc desc = Product();
  desc.a.unary = UnaryOperator::kConj;
  EXPECT_TRUE(Validate(desc).ok()) << "the identity on real types";
  desc.b.unary = UnaryOperator::kSqrt;
  EXPECT_THAT(Validate(desc),
              IsInvalid("OPERATOR_NOT_LINEAR", "operator SQRT of b"));
  desc = Product();
  desc.c->unary = UnaryOperator::kNeg;
  EXPECT_THAT(Validate(desc),
              IsInvalid("OPERATOR_NOT_LINEAR", "operator NEG of c"));
}

TEST(ContractionTest, OutputThatOverlapsItselfIsRefused) {
  ContractionDesc desc = Product();
  desc.c = std::nullopt;
  desc.d = Strided(kF32, "mn", {3, 5}, {1, 1});
  EXPECT_THAT(Validate(desc), IsInvalid("OUTPUT_OVERLAPS_ITSELF", "(1, 1)"));
}

// A4.T14
TEST(ContractionTest, OtherTypesNameTheNearestRows) {
  ContractionDesc desc = Product();
  desc.compute_type = ComputeType::kFloat64;
  EXPECT_THAT(Validate(desc),
              IsUnsupported("nearest: (float32, float32, float32) in float32"));
}

}  // namespace
}  // namespace tensord::core
