#include "core/ops/operators.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <set>
#include <string>

#include "core/ops/scalar.h"
#include "gtest/gtest.h"
#include "tests/unit/core/ops/refusal.h"

namespace tensord::core {
namespace {

using tensord::test::IsInvalid;

int CountValid(ElementType type) {
  int count = 0;
  for (int i = 0; i < kUnaryOperatorCount; ++i) {
    count += ValidateUnary(static_cast<UnaryOperator>(i), type, "a").ok();
  }
  return count;
}

TEST(OperatorsTest, NamesAreUnique) {
  std::set<std::string> names;
  for (int i = 0; i < kUnaryOperatorCount; ++i) {
    names.insert(std::string(NameOf(static_cast<UnaryOperator>(i))));
  }
  EXPECT_EQ(names.size(), 30u);
  for (int i = 0; i < kBinaryOperatorCount; ++i) {
    names.insert(std::string(NameOf(static_cast<BinaryOperator>(i))));
  }
  EXPECT_EQ(names.size(), 30u + 14);
  EXPECT_EQ(NameOf(UnaryOperator::kSoftSign), "SOFT_SIGN");
  EXPECT_EQ(NameOf(BinaryOperator::kMin), "MIN");
}

TEST(OperatorsTest, EachClassOfTypesHasItsOperators) {
  EXPECT_EQ(CountValid(ElementType::kFloat16), 30);
  EXPECT_EQ(CountValid(ElementType::kFloat64), 30);
  EXPECT_EQ(CountValid(ElementType::kComplex64), 22);
  EXPECT_EQ(CountValid(ElementType::kInt32), 7);
  EXPECT_EQ(CountValid(ElementType::kBool), 7);
}

TEST(OperatorsTest, RefusalsNameOperatorOperandAndType) {
  EXPECT_THAT(
      ValidateUnary(UnaryOperator::kMish, ElementType::kComplex128, "b"),
      IsInvalid("OPERATOR_NEEDS_ORDER",
                "operator MISH of b is not defined on complex128"));
  EXPECT_THAT(ValidateUnary(UnaryOperator::kSqrt, ElementType::kInt8, "a"),
              IsInvalid("OPERATOR_NEEDS_FLOAT",
                        "operator SQRT of a is not defined on int8"));
  EXPECT_THAT(ValidateBinary(BinaryOperator::kMax, ElementType::kComplex64),
              IsInvalid("OPERATOR_NEEDS_ORDER", "MAX"));
  EXPECT_TRUE(ValidateBinary(BinaryOperator::kMax, ElementType::kInt8).ok());
  EXPECT_THAT(
      ValidateBinary(BinaryOperator::kGreater, ElementType::kComplex128),
      IsInvalid("OPERATOR_NEEDS_ORDER", "GREATER is not defined on"));
  EXPECT_THAT(ValidateBinary(BinaryOperator::kDiv, ElementType::kInt64),
              IsInvalid("OPERATOR_NEEDS_FLOAT", "DIV is not defined on int64"));
  EXPECT_THAT(ValidateBinary(BinaryOperator::kPow, ElementType::kBool),
              IsInvalid("OPERATOR_NEEDS_NUMBERS", "POW"));
  EXPECT_TRUE(ValidateBinary(BinaryOperator::kPow, ElementType::kInt8).ok());
  EXPECT_TRUE(
      ValidateBinary(BinaryOperator::kEqual, ElementType::kComplex64).ok());
}

TEST(ScalarTest, ImaginaryPartNeedsAComplexType) {
  EXPECT_TRUE(ValidateScalar({1, 2}, ElementType::kComplex64, "alpha").ok());
  EXPECT_THAT(ValidateScalar({1, 2}, ElementType::kFloat32, "alpha"),
              IsInvalid("SCALAR_NOT_REAL", "alpha is 1 + 2i"));
}

TEST(ScalarTest, IntegersNeedWholeFactorsInRange) {
  EXPECT_TRUE(ValidateScalar({-3, 0}, ElementType::kInt8, "beta").ok());
  EXPECT_TRUE(ValidateScalar({0.5, 0}, ElementType::kFloat16, "beta").ok());
  for (const double bad : {0.5, 0x1p63, -0x1p63 * 2, 1.0 / 0.0, 0.0 / 0.0}) {
    EXPECT_THAT(ValidateScalar({bad, 0}, ElementType::kInt64, "beta"),
                IsInvalid("SCALAR_NOT_INTEGER", "beta"));
  }
}

TEST(ScalarTest, BecomesAnElementOfEveryType) {
  const auto bytes = [](std::initializer_list<int> values) {
    ElementBytes result{};
    std::transform(values.begin(), values.end(), result.begin(),
                   [](int value) { return static_cast<std::byte>(value); });
    return result;
  };
  const auto element = [](double value, ElementType type) {
    return ElementOf({value, 0}, type, "padding").value();
  };
  EXPECT_EQ(element(-2, ElementType::kInt8), bytes({0xfe}));
  EXPECT_EQ(element(255, ElementType::kUint8), bytes({0xff}));
  EXPECT_EQ(element(1, ElementType::kBool), bytes({1}));
  EXPECT_EQ(element(258, ElementType::kInt16), bytes({2, 1}));
  EXPECT_EQ(element(1.5, ElementType::kFloat16), bytes({0, 0x3e}));
  EXPECT_EQ(element(1.5, ElementType::kBfloat16), bytes({0xc0, 0x3f}));
  EXPECT_EQ(element(1.5, ElementType::kFloat32), bytes({0, 0, 0xc0, 0x3f}));
  EXPECT_EQ(element(-1.0 / 0.0, ElementType::kFloat32),
            bytes({0, 0, 0x80, 0xff}));
  EXPECT_EQ(ElementOf({1.5, -2}, ElementType::kComplex64, "padding").value(),
            bytes({0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0}));
}

TEST(ScalarTest, ElementsBeyondTheRangeOfTheirTypeAreRefused) {
  const auto refusal = [](double value, ElementType type) {
    return ElementOf({value, 0}, type, "padding").status();
  };
  EXPECT_THAT(refusal(128, ElementType::kInt8),
              IsInvalid("SCALAR_OUT_OF_RANGE",
                        "padding is 128, beyond the range of int8"));
  EXPECT_THAT(refusal(-1, ElementType::kUint8),
              IsInvalid("SCALAR_OUT_OF_RANGE", "uint8"));
  EXPECT_THAT(refusal(2, ElementType::kBool),
              IsInvalid("SCALAR_OUT_OF_RANGE", "bool"));
  EXPECT_THAT(refusal(70000, ElementType::kFloat16),
              IsInvalid("SCALAR_OUT_OF_RANGE", "float16"));
  EXPECT_THAT(refusal(1e39, ElementType::kComplex64),
              IsInvalid("SCALAR_OUT_OF_RANGE", "complex64"));
  EXPECT_THAT(refusal(0.5, ElementType::kInt32),
              IsInvalid("SCALAR_NOT_INTEGER", "padding"));
}

TEST(ScalarTest, ZeroAndOneAreRecognised) {
  EXPECT_TRUE(kZero.IsZero());
  EXPECT_TRUE((Scalar{-0.0, 0}.IsZero()));
  EXPECT_FALSE((Scalar{0, 1}.IsZero()));
  EXPECT_TRUE(kOne.IsOne());
  EXPECT_FALSE((Scalar{1, 1}.IsOne()));
}

}  // namespace
}  // namespace tensord::core
