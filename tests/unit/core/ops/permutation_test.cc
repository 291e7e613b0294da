#include "core/ops/permutation.h"

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

PermutationDesc Transpose() {
  return {.a = Packed(kF32, "ij", {3, 4}), .d = Packed(kF32, "ji", {4, 3})};
}

TEST(PermutationTest, ModesMayComeInAnyOrder) {
  EXPECT_TRUE(Validate(Transpose()).ok());
}

// A3.3
TEST(PermutationTest, OmittedModeIsBroadcast) {
  PermutationDesc desc = Transpose();
  desc.a = Packed(kF32, "j", {4});
  EXPECT_TRUE(Validate(desc).ok());
  desc.a = Packed(kF32, "", {});
  EXPECT_TRUE(Validate(desc).ok());
}

TEST(PermutationTest, ComplexNumbersBecomeRealByAnOperator) {
  PermutationDesc desc = Transpose();
  desc.a.element_type = ElementType::kComplex64;
  EXPECT_THAT(Validate(desc),
              IsInvalid("PART_UNKNOWN", "IDENTITY, wanted REAL, IMAG or ABS"));
  for (const auto op :
       {UnaryOperator::kReal, UnaryOperator::kImag, UnaryOperator::kAbs}) {
    desc.a.unary = op;
    EXPECT_TRUE(Validate(desc).ok());
  }
  desc.d.element_type = ElementType::kInt32;
  EXPECT_THAT(Validate(desc), IsUnsupported("(complex64, int32)"));
}

TEST(PermutationTest, EmptyTensorsAreValid) {
  EXPECT_TRUE(Validate(PermutationDesc{.a = Packed(kF32, "ij", {0, 4}),
                                       .d = Packed(kF32, "ji", {4, 0})})
                  .ok());
}

// A3.4
TEST(PermutationTest, ModeThatTheOutputLacksIsRefused) {
  PermutationDesc desc = Transpose();
  desc.d = Packed(kF32, "i", {3});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_NOT_IN_OUTPUT",
                        "mode 'j' of a ('i', 'j') is not in d ('i'); to sum "
                        "over it, use a reduction"));
}

// A3.4, A1.4
TEST(PermutationTest, RepeatedModeIsRefused) {
  PermutationDesc desc = Transpose();
  desc.a.modes = {'i', 'i'};
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_REPEATED", "mode 'i' occurs twice in a"));
  desc = Transpose();
  desc.d.modes = {-5, -5};
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_REPEATED", "mode -5 occurs twice in d"));
}

// NumPy's interleaved einsum labels modes 0 to 51, which are no characters.
TEST(PermutationTest, MessagesShowLettersAsLettersAndOtherLabelsAsNumbers) {
  EXPECT_EQ(ToString(Modes{'k', 'Z', 0, 25, 49, 51, 95, -107}),
            "('k', 'Z', 0, 25, 49, 51, 95, -107)");
  EXPECT_EQ(ToString(Modes{0xb5, 0xd7, 0x3b1, 0x4e00, 0x1d4aa}),
            "('\u00b5', '\u00d7', '\u03b1', '\u4e00', '\U0001d4aa')");
  EXPECT_EQ(ToString(Modes{0x7f, 0xa0, 0xb2, 0x301, 0xd800, 0x110000}),
            "(127, 160, 178, 769, 55296, 1114112)");
  PermutationDesc desc = Transpose();
  desc.d = Packed(kF32, "ji", {5, 3});
  desc.a.modes = {48, 49};
  desc.d.modes = {49, 48};
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_EXTENT_MISMATCH",
                                        "mode 49 has extent 4 in a but 5"));
}

TEST(PermutationTest, DifferentExtentsNameTheModeAndBoth) {
  PermutationDesc desc = Transpose();
  desc.d = Packed(kF32, "ji", {5, 3});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_EXTENT_MISMATCH",
                        "mode 'j' has extent 4 in a but 5 in d"));
}

TEST(PermutationTest, ModesWithoutExtentAreRefused) {
  PermutationDesc desc = Transpose();
  desc.a.modes = {'i'};
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_COUNT_MISMATCH", "a has 2 extents"));
}

TEST(PermutationTest, OutputThatOverlapsItselfIsRefused) {
  PermutationDesc desc = Transpose();
  desc.d = Strided(kF32, "ji", {4, 3}, {1, 2});
  EXPECT_THAT(Validate(desc), IsInvalid("OUTPUT_OVERLAPS_ITSELF",
                                        "extents (4, 3) and strides (1, 2)"));
  desc.d = Packed(kF32, "ji", {4, 3});
  desc.a = Strided(kF32, "ij", {3, 4}, {1, 2});
  EXPECT_TRUE(Validate(desc).ok()) << "an input may";
}

TEST(PermutationTest, OperatorOnTheOutputIsRefused) {
  PermutationDesc desc = Transpose();
  desc.d.unary = UnaryOperator::kSqrt;
  EXPECT_THAT(Validate(desc), IsInvalid("OPERATOR_ON_OUTPUT", "SQRT"));
}

TEST(PermutationTest, UnknownTypesNameTheNearestRows) {
  PermutationDesc desc = Transpose();
  desc.d.element_type = ElementType::kInt32;
  EXPECT_TRUE(Validate(desc).ok());
  desc.compute_type = ComputeType::kFloat64;
  EXPECT_THAT(Validate(desc),
              IsUnsupported("(a, d) = (float32, int32) in float64"));
  EXPECT_THAT(Validate(desc), IsUnsupported("(float32, int32) in float32"));
}

TEST(PermutationTest, StrideErrorsNameTheOperand) {
  PermutationDesc desc = Transpose();
  desc.d.layout.strides = {1, 0};
  EXPECT_THAT(Validate(desc),
              IsInvalid("STRIDE_NOT_POSITIVE", "stride 1 of d is 0"));
}

}  // namespace
}  // namespace tensord::core
