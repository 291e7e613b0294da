#include "core/ops/elementwise.h"

#include "gtest/gtest.h"
#include "tests/testing/element_types.h"
#include "tests/testing/operands.h"
#include "tests/unit/core/ops/refusal.h"

namespace tensord::core {
namespace {

using tensord::test::IsInvalid;
using tensord::test::IsUnsupported;
using tensord::test::Packed;

using tensord::test::kC64;
using tensord::test::kF32;

ElementwiseDesc Trinary(ElementType type = kF32) {
  return {.a = Packed(type, "ij", {3, 4}),
          .b = Packed(type, "ji", {4, 3}),
          .c = Packed(type, "ij", {3, 4}),
          .d = Packed(type, "ij", {3, 4})};
}

// A1.1, A1.2
TEST(ElementwiseTest, InputsMayPermuteAndBroadcast) {
  ElementwiseDesc desc = Trinary();
  EXPECT_TRUE(Validate(desc).ok());
  desc.a = Packed(kF32, "j", {4});
  desc.b = Packed(kF32, "", {});
  EXPECT_TRUE(Validate(desc).ok());
  desc.b = std::nullopt;
  EXPECT_TRUE(Validate(desc).ok());
}

// A1.3
TEST(ElementwiseTest, ModeThatTheOutputLacksIsRefused) {
  for (const char* operand : {"a", "b", "c"}) {
    ElementwiseDesc desc = Trinary();
    (*operand == 'a'   ? desc.a
     : *operand == 'b' ? *desc.b
                       : desc.c) = Packed(kF32, "ik", {3, 2});
    EXPECT_THAT(
        Validate(desc),
        IsInvalid("MODE_NOT_IN_OUTPUT", std::string("mode 'k' of ") + operand));
  }
}

// A1.4
TEST(ElementwiseTest, RepeatedModeIsRefused) {
  ElementwiseDesc desc = Trinary();
  desc.b->modes = {'i', 'i'};
  EXPECT_THAT(Validate(desc), IsInvalid("MODE_REPEATED", "twice in b"));
}

TEST(ElementwiseTest, DifferentExtentsNameTheModeAndBoth) {
  ElementwiseDesc desc = Trinary();
  desc.b = Packed(kF32, "ji", {4, 7});
  EXPECT_THAT(Validate(desc),
              IsInvalid("MODE_EXTENT_MISMATCH",
                        "mode 'i' has extent 7 in b but 3 in d"));
}

// A1.10
TEST(ElementwiseTest, OutputOfAnotherTypeThanTheLastInputIsRefused) {
  ElementwiseDesc desc = Trinary();
  desc.d.element_type = ElementType::kFloat16;
  EXPECT_THAT(Validate(desc),
              IsInvalid("ADDEND_MISMATCH", "c is float32 but d is float16"));
}

TEST(ElementwiseTest, OrderedOperatorsOnComplexAreRefused) {
  ElementwiseDesc desc = Trinary(kC64);
  EXPECT_TRUE(Validate(desc).ok());
  desc.op_ab = BinaryOperator::kMax;
  EXPECT_THAT(Validate(desc), IsInvalid("OPERATOR_NEEDS_ORDER", "MAX"));
  desc.op_ab = BinaryOperator::kMul;
  desc.op_abc = BinaryOperator::kMin;
  EXPECT_THAT(Validate(desc), IsInvalid("OPERATOR_NEEDS_ORDER", "MIN"));
  desc.op_abc = BinaryOperator::kAdd;
  desc.c.unary = UnaryOperator::kRelu;
  EXPECT_THAT(Validate(desc), IsInvalid("OPERATOR_NEEDS_ORDER", "RELU of c"));
}

TEST(ElementwiseTest, ComparisonsGiveBools) {
  ElementwiseDesc desc = Trinary();
  desc.op_abc = BinaryOperator::kLess;
  EXPECT_THAT(Validate(desc), IsInvalid("RESULT_NOT_BOOL", "d is float32"));
  desc.d.element_type = ElementType::kBool;
  EXPECT_TRUE(Validate(desc).ok());
  desc.op_ab = BinaryOperator::kEqual;
  EXPECT_THAT(Validate(desc), IsInvalid("OPERATOR_MISPLACED", "EQUAL"));
}

TEST(ElementwiseTest, WhereChoosesByBools) {
  ElementwiseDesc desc = Trinary();
  desc.op_abc = BinaryOperator::kWhere;
  EXPECT_THAT(Validate(desc), IsInvalid("CONDITION_NOT_BOOL", "b, which is"));
  desc.b->element_type = ElementType::kBool;
  desc.op_ab = BinaryOperator::kLess;  // ignored
  EXPECT_TRUE(Validate(desc).ok());
  desc.b = std::nullopt;
  EXPECT_THAT(Validate(desc), IsInvalid("CONDITION_NOT_BOOL", "absent"));
}

TEST(ElementwiseTest, TakeIndexesTheModeThatDLacks) {
  ElementwiseDesc desc = Trinary();
  desc.op_abc = BinaryOperator::kTake;
  EXPECT_EQ(desc.taken(), -1);
  EXPECT_THAT(Validate(desc), IsInvalid("TAKEN_MODE_UNKNOWN", "there is none"));
  desc.a.modes.push_back('z');
  desc.a.layout = PackedLayout({3, 4, 5}, Order::kFirstModeFastest);
  EXPECT_EQ(desc.taken(), 2);
  EXPECT_THAT(Validate(desc), IsInvalid("INDEX_NOT_INTEGER", "float32"));
  desc.b->element_type = ElementType::kBool;
  EXPECT_THAT(Validate(desc), IsInvalid("INDEX_NOT_INTEGER", "bool"));
  desc.b->element_type = ElementType::kInt32;
  desc.op_ab = BinaryOperator::kLess;  // ignored
  EXPECT_TRUE(Validate(desc).ok()) << Validate(desc);
  desc.a.modes.push_back('y');
  desc.a.layout = PackedLayout({3, 4, 5, 6}, Order::kFirstModeFastest);
  EXPECT_THAT(Validate(desc), IsInvalid("TAKEN_MODE_UNKNOWN", "are several"));
  desc.b = std::nullopt;
  EXPECT_EQ(Validate(desc).code(), absl::StatusCode::kInvalidArgument);
}

TEST(ElementwiseTest, FirstOperatorIsIgnoredWithoutB) {
  ElementwiseDesc desc = Trinary(kC64);
  desc.b = std::nullopt;
  desc.op_ab = BinaryOperator::kMax;
  EXPECT_TRUE(Validate(desc).ok());
}

// A1.T12
TEST(ElementwiseTest, OtherTypeTriplesAreUnsupported) {
  ElementwiseDesc desc = Trinary();
  desc.b->element_type = ElementType::kFloat64;
  EXPECT_THAT(Validate(desc),
              IsUnsupported("(a, b, c) = (float32, float64, float32)"));
  desc = Trinary(ElementType::kFloat64);
  EXPECT_THAT(Validate(desc), IsUnsupported("nearest")) << "in float32";
}

}  // namespace
}  // namespace tensord::core
