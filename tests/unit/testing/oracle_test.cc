// The judge judged: values worked out by hand, and errors that must be noticed.
#include "tests/testing/oracle/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/element_types.h"
#include "tests/testing/operands.h"
#include "tests/testing/oracle/error_bound.h"

namespace tensord::test {
namespace {

using core::BinaryOperator;
using core::ComputeType;
using core::ElementType;
using core::UnaryOperator;

using tensord::test::kF16;
using tensord::test::kF32;
using tensord::test::kI32;

template <typename T>
const std::byte* BytesOf(const std::vector<T>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

std::vector<Real> Values(const std::vector<Expected>& expected, size_t count) {
  std::vector<Real> values(count, -1000);
  for (const Expected& element : expected) {
    values.at(static_cast<size_t>(element.offset)) =
        element.estimate.value.real();
  }
  return values;
}

TEST(OracleTest, TransposesByHand) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const core::PermutationDesc desc{.a = Packed(kF32, "ij", {2, 3}),
                                   .d = Packed(kF32, "ji", {3, 2})};
  EXPECT_EQ(Values(Evaluate(desc, {.a = BytesOf(a), .alpha = {10, 0}}), 6),
            (std::vector<Real>{10, 30, 50, 20, 40, 60}));
}

TEST(OracleTest, MultipliesMatricesByHand) {
  const std::vector<float> a = {1, 2, 3, 4};  // (1 3; 2 4)
  const std::vector<float> b = {5, 6, 7, 8};  // (5 7; 6 8)
  const std::vector<float> c = {1, 1, 1, 1};
  const core::ContractionDesc desc{.a = Packed(kF32, "mk", {2, 2}),
                                   .b = Packed(kF32, "kn", {2, 2}),
                                   .c = Packed(kF32, "mn", {2, 2}),
                                   .d = Packed(kF32, "mn", {2, 2})};
  const Inputs inputs{.a = BytesOf(a),
                      .b = BytesOf(b),
                      .c = BytesOf(c),
                      .alpha = {2, 0},
                      .beta = {-1, 0}};
  EXPECT_EQ(Values(Evaluate(desc, inputs), 4),
            (std::vector<Real>{45, 67, 61, 91}));
}

TEST(OracleTest, ReducesByHand) {
  const std::vector<float> a = {1, -2, 3, 4, 5, -6};
  core::ReductionDesc desc{.a = Packed(kF32, "ij", {2, 3}),
                           .c = std::nullopt,
                           .d = Packed(kF32, "i", {2})};
  const auto reduce = [&](BinaryOperator op) {
    desc.op = op;
    return Values(Evaluate(desc, {.a = BytesOf(a)}), 2);
  };
  EXPECT_EQ(reduce(BinaryOperator::kAdd), (std::vector<Real>{9, -4}));
  EXPECT_EQ(reduce(BinaryOperator::kMul), (std::vector<Real>{15, 48}));
  EXPECT_EQ(reduce(BinaryOperator::kMax), (std::vector<Real>{5, 4}));
  EXPECT_EQ(reduce(BinaryOperator::kMin), (std::vector<Real>{1, -6}));
}

TEST(OracleTest, CombinesByHandWithBroadcast) {
  const std::vector<float> a = {1, 4}, b = {3}, c = {1, 2, 3, 4};
  const core::ElementwiseDesc desc{
      .a = Packed(kF32, "j", {2}, UnaryOperator::kSqrt),
      .b = Packed(kF32, "", {}),
      .c = Packed(kF32, "ij", {2, 2}),
      .d = Strided(kF32, "ij", {2, 2}, {1, 3}),
      .op_ab = BinaryOperator::kMul,
      .op_abc = BinaryOperator::kMax};
  const Inputs inputs{.a = BytesOf(a),
                      .b = BytesOf(b),
                      .c = BytesOf(c),
                      .alpha = core::kOne,
                      .beta = core::kOne,
                      .gamma = {1.75, 0}};
  EXPECT_EQ(Values(Evaluate(desc, inputs), 5),
            (std::vector<Real>{3, 3.5L, -1000, 6, 7}));
}

TEST(OracleTest, IntegersWrap) {
  const std::vector<int32_t> a = {std::numeric_limits<int32_t>::max(), 1};
  const auto expected =
      Evaluate(core::ReductionDesc{.a = Packed(kI32, "i", {2}),
                                   .c = std::nullopt,
                                   .d = Packed(kI32, "", {}),
                                   .compute_type = ComputeType::kInteger},
               {.a = BytesOf(a)});
  EXPECT_EQ(expected.at(0).integer, std::numeric_limits<int32_t>::min());
}

TEST(OracleTest, ZeroFactorReadsNothing) {
  const auto expected =
      Evaluate(core::PermutationDesc{.a = Packed(kF32, "i", {1}),
                                     .d = Packed(kF32, "i", {1})},
               {.a = nullptr, .alpha = core::kZero});
  EXPECT_EQ(expected.at(0).estimate.value, Number(0));
}

TEST(NumberTest, StoredNumbersComeBack) {
  for (const ElementType type :
       {kF16, ElementType::kBfloat16, kF32, ElementType::kFloat64}) {
    std::byte bytes[8];
    for (const Real value : {0.0L, 1.5L, -0.1875L, 40960.0L}) {
      StoreNumber(type, value, bytes);
      EXPECT_EQ(LoadNumber(type, bytes), Number(value));
    }
  }
}

// The machine's own conversion is a second witness for float32.
TEST(NumberTest, RoundingAgreesWithTheMachine) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < 200'000; ++i) {
    const double value =
        std::ldexp(static_cast<double>(static_cast<int64_t>(rng())),
                   static_cast<int>(rng() % 320) - 230);
    std::byte bytes[4];
    StoreNumber(kF32, value, bytes);
    float stored;
    std::memcpy(&stored, bytes, 4);
    ASSERT_EQ(stored, static_cast<float>(value)) << value;
  }
}

TEST(AgreesTest, RoundedResultsAgreeAndTheNextNumberDoesNot) {
  const Estimate exact{Number(1.0L / 3)};
  const float nearest = 1.0f / 3;
  EXPECT_TRUE(Agrees(Number(nearest), exact, kF32));
  EXPECT_FALSE(Agrees(Number(std::nextafter(nearest, 0.0f)), exact, kF32));
}

TEST(AgreesTest, NanAndInfinityMustBeMet) {
  constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  EXPECT_TRUE(Agrees(kNan, {kNan}, kF32));
  EXPECT_FALSE(Agrees(1, {kNan}, kF32));
  EXPECT_FALSE(Agrees(kNan, {1}, kF32));
  EXPECT_TRUE(Agrees(kInfinity, {kInfinity}, kF32));
  EXPECT_FALSE(Agrees(-kInfinity, {kInfinity}, kF32));
  EXPECT_FALSE(Agrees(kInfinity, {1}, kF32));
  EXPECT_TRUE(Agrees(kInfinity, {70000}, kF16)) << "beyond the range";
  EXPECT_FALSE(Agrees(-kInfinity, {70000}, kF16));
}

/// Sum of `values` one after the other in float.
float NaiveSum(const std::vector<float>& values) {
  float sum = 0;
  for (const float value : values) sum += value;
  return sum;
}

TEST(ErrorBoundTest, LongSumsOneByOneExceedTheBoundOfATree) {
  const std::vector<float> tenths(4'000'000, 0.1f);
  const auto expected =
      Evaluate(core::ReductionDesc{.a = Packed(kF32, "i", {4'000'000}),
                                   .c = std::nullopt,
                                   .d = Packed(kF32, "", {})},
               {.a = BytesOf(tenths)});
  EXPECT_FALSE(Agrees(NaiveSum(tenths), expected.at(0).estimate, kF32));
}

TEST(ErrorBoundTest, SumsInAnyOrderStayWithinTheBoundOfAContraction) {
  Real worst = 0;
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    const auto count = static_cast<int64_t>(1 + rng() % 3000);
    std::vector<float> a(static_cast<size_t>(count)), one = {1};
    for (float& value : a) value = uniform(rng);
    const auto expected =
        Evaluate(core::ContractionDesc{.a = Packed(kF32, "k", {count}),
                                       .b = Packed(kF32, "", {}),
                                       .c = std::nullopt,
                                       .d = Packed(kF32, "", {})},
                 {.a = BytesOf(a), .b = BytesOf(one)});
    const float sum = NaiveSum(a);
    ASSERT_TRUE(Agrees(sum, expected.at(0).estimate, kF32));
    worst = std::max(worst, ErrorRatio(sum, expected.at(0).estimate, kF32));
  }
  EXPECT_LT(worst, 1);
}

// 1 + 2^-10 - 2^-23 in TF32: rounded it is 1 + 2^-10, cut off 1.
TEST(ErrorBoundTest, TensorCoresMayCutOffWhatOthersRound) {
  const std::vector<float> a = {0x1.003ffep0f}, one = {1};
  const core::ContractionDesc desc{.a = Packed(kF32, "", {}),
                                   .b = Packed(kF32, "", {}),
                                   .c = std::nullopt,
                                   .d = Packed(kF32, "", {}),
                                   .compute_type = core::ComputeType::kTf32};
  const Inputs inputs{.a = BytesOf(a), .b = BytesOf(one)};
  const auto agrees = [&](Adder adder, Real actual) {
    const auto expected = Evaluate(desc, inputs, adder);
    return Agrees({actual, 0}, expected.at(0).estimate, kF32);
  };
  EXPECT_TRUE(agrees(Adder::kNearest, 1 + 0x1p-10L));
  EXPECT_FALSE(agrees(Adder::kNearest, 1));
  EXPECT_TRUE(agrees(Adder::kTensorCores, 1 + 0x1p-10L));
  EXPECT_TRUE(agrees(Adder::kTensorCores, 1));
  EXPECT_FALSE(agrees(Adder::kTensorCores, 1 - 0x1p-10L));
}

TEST(ErrorBoundTest, RoundingDoesNotExcuseWhatBecomesOfAnInfinity) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> a = {kInfinity}, b = {0x1.003ffep0f};
  for (const auto compute :
       {core::ComputeType::kTf32, core::ComputeType::kThreeTf32}) {
    const auto expected = Evaluate({.a = Packed(kF32, "", {}),
                                    .b = Packed(kF32, "", {}),
                                    .c = std::nullopt,
                                    .d = Packed(kF32, "", {}),
                                    .compute_type = compute},
                                   {.a = BytesOf(a), .b = BytesOf(b)});
    EXPECT_TRUE(Agrees(kInfinity, expected.at(0).estimate, kF32));
    EXPECT_FALSE(Agrees(std::nanf(""), expected.at(0).estimate, kF32));
    EXPECT_FALSE(Agrees(-kInfinity, expected.at(0).estimate, kF32));
  }
}

TEST(ErrorBoundTest, ThreeTf32KeepsWhatOneTf32NumberHolds) {
  const auto error_of = [](float x) {
    const std::vector<float> a = {x}, one = {1};
    const auto expected =
        Evaluate({.a = Packed(kF32, "", {}),
                  .b = Packed(kF32, "", {}),
                  .c = std::nullopt,
                  .d = Packed(kF32, "", {}),
                  .compute_type = core::ComputeType::kThreeTf32},
                 {.a = BytesOf(a), .b = BytesOf(one)});
    return expected.at(0).estimate.error;
  };
  EXPECT_GT(error_of(1 + 0x1p-11f), 1.5L * 0x1p-22L);
  EXPECT_LT(error_of(1 + 0x1p-10f), 1.5L * 0x1p-22L);
}

TEST(ErrorBoundTest, OneTermTooFewExceedsTheBound) {
  const std::vector<float> a(1000, 0.5f), b(1000, 0.5f);
  const auto expected =
      Evaluate(core::ContractionDesc{.a = Packed(kF32, "k", {1000}),
                                     .b = Packed(kF32, "k", {1000}),
                                     .c = std::nullopt,
                                     .d = Packed(kF32, "", {})},
               {.a = BytesOf(a), .b = BytesOf(b)});
  EXPECT_TRUE(Agrees(250, expected.at(0).estimate, kF32));
  EXPECT_FALSE(Agrees(249.75L, expected.at(0).estimate, kF32));
}

}  // namespace
}  // namespace tensord::test
