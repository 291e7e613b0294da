#include "core/ops/reduction.h"

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

ReductionDesc RowSums() {
  return {.a = Packed(kF32, "ijk", {3, 4, 5}),
          .c = Packed(kF32, "ki", {5, 3}),
          .d = Packed(kF32, "ki", {5, 3})};
}

TEST(ReductionTest, OutputHasSomeOfTheModesInAnyOrder) {
  EXPECT_TRUE(Validate(RowSums()).ok());
  ReductionDesc desc = RowSums();
  desc.c = std::nullopt;
  desc.d = Packed(kF32, "", {});
  EXPECT_TRUE(Validate(desc).ok());
  desc.a = Packed(kF32, "i", {0});
  EXPECT_TRUE(Validate(desc).ok()) << "over nothing";
}

TEST(ReductionTest, BroadcastIsRefused) {
  ReductionDesc desc = RowSums();
  desc.c = std::nullopt;
  desc.d = Packed(kF32, "kix", {5, 3, 2});
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_NOT_IN_OUTPUT", "mode 'x' of d"));
}

TEST(ReductionTest, DifferentExtentsNameTheModeAndBoth) {
  ReductionDesc desc = RowSums();
  desc.c = std::nullopt;
  desc.d = Packed(kF32, "ki", {5, 2});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_EXTENT_MISMATCH",
                        "mode 'i' has extent 3 in a but 2 in d"));
}

// A5.6
TEST(ReductionTest, AddendMustBeLikeTheOutput) {
  ReductionDesc desc = RowSums();
  desc.c = Strided(kF32, "ki", {5, 3}, {3, 1});
  EXPECT_TRUE(Validate(desc).ok()) << "strides may differ";
  desc.c = Packed(kF32, "ik", {3, 5});
  EXPECT_THAT(Validate(desc),
              IsInvalid("ADDEND_MISMATCH", "c has modes ('i', 'k')"));
  desc.c = Packed(kF32, "ki", {5, 2});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_EXTENT_MISMATCH", "extent 2 in c but 3 in d"));
  desc.c = Packed(ElementType::kFloat64, "ki", {5, 3});
  EXPECT_THAT(Validate(desc),
              IsInvalid("ADDEND_MISMATCH", "c is float64 but d is float32"));
}

TEST(ReductionTest, OrderedOperatorsOnComplexAreRefused) {
  constexpr auto kC64 = ElementType::kComplex64;
  ReductionDesc desc{.a = Packed(kC64, "ij", {3, 4}),
                     .c = std::nullopt,
                     .d = Packed(kC64, "i", {3}),
                     .op = BinaryOperator::kMax};
  EXPECT_THAT(Validate(desc), IsInvalid("OPERATOR_NEEDS_ORDER", "complex64"));
  desc.op = BinaryOperator::kMul;
  EXPECT_TRUE(Validate(desc).ok());
}

TEST(ReductionTest, MixedTypesAreUnsupported) {
  ReductionDesc desc = RowSums();
  desc.c = std::nullopt;
  desc.d.element_type = ElementType::kFloat64;
  EXPECT_THAT(Validate(desc), IsUnsupported("(a, c) = (float32, float64)"));
}

TEST(ReductionTest, AlongAModeAllModesStay) {
  ReductionDesc desc{.a = Packed(kF32, "ij", {3, 4}),
                     .c = {},
                     .d = Packed(kF32, "ji", {4, 3}),
                     .along = Along{'j'}};
  EXPECT_TRUE(Validate(desc).ok()) << Validate(desc);
  desc.along->mode = 'k';
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_NOT_IN_INPUT", "mode 'k', along which d goes"));
  desc.along->mode = 'j';
  desc.d = Packed(kF32, "j", {4});
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_NOT_IN_OUTPUT", "mode 'i' of a"));
  desc.d = Packed(kF32, "i", {3});
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_NOT_IN_OUTPUT", "mode 'j' of a"));
}

TEST(ReductionTest, IndicesThatSortAreOfRealNumbers) {
  ReductionDesc desc{.a = Packed(kF32, "ij", {3, 4}),
                     .c = {},
                     .d = Packed(ElementType::kInt64, "ij", {3, 4}),
                     .compute_type = ComputeType::kInteger,
                     .along = Along{'j', Sorting::kAscending}};
  for (int i = 0; i < kElementTypeCount; ++i) {
    desc.a.element_type = static_cast<ElementType>(i);
    if (IsComplex(desc.a.element_type)) {
      EXPECT_THAT(Validate(desc),
                  IsInvalid("OPERATOR_NEEDS_ORDER", "sorting is not defined"));
    } else {
      EXPECT_TRUE(Validate(desc).ok()) << Validate(desc);
    }
  }
  desc.a.element_type = kF32;
  desc.a.unary = UnaryOperator::kAbs;
  EXPECT_THAT(Validate(desc), IsInvalid("OPERATOR_IN_SORTING", "ABS"));
  desc.a.unary = UnaryOperator::kIdentity;
  desc.compute_type = ComputeType::kFloat32;
  EXPECT_THAT(Validate(desc), IsUnsupported("(float32, int64) in integer"));
  desc.d.element_type = ElementType::kInt32;
  EXPECT_THAT(Validate(desc), IsUnsupported("(float32, int32)"));
}

}  // namespace
}  // namespace tensord::core
