#include "core/ops/operators.h"

#include <set>
#include <string>

#include "core/ops/scalar.h"
#include "gtest/gtest.h"
#include "tests/unit/core/ops/refusal.h"

namespace tensord::core {
namespace {

using test::IsInvalid;

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
  EXPECT_EQ(names.size(), 28u);
  EXPECT_EQ(NameOf(UnaryOperator::kSoftSign), "SOFT_SIGN");
  EXPECT_EQ(NameOf(BinaryOperator::kMin), "MIN");
}

TEST(OperatorsTest, EachClassOfTypesHasItsOperators) {
  EXPECT_EQ(CountValid(ElementType::kFloat16), 28);
  EXPECT_EQ(CountValid(ElementType::kFloat64), 28);
  EXPECT_EQ(CountValid(ElementType::kComplex64), 20);
  EXPECT_EQ(CountValid(ElementType::kInt32), 5);
  EXPECT_EQ(CountValid(ElementType::kBool), 5);
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

TEST(ScalarTest, ZeroAndOneAreRecognised) {
  EXPECT_TRUE(kZero.IsZero());
  EXPECT_TRUE((Scalar{-0.0, 0}.IsZero()));
  EXPECT_FALSE((Scalar{0, 1}.IsZero()));
  EXPECT_TRUE(kOne.IsOne());
  EXPECT_FALSE((Scalar{1, 1}.IsOne()));
}

}  // namespace
}  // namespace tensord::core
