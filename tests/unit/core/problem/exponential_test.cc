#include "core/problem/exponential.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::core {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

TEST(PadeCoefficientsTest, AreThoseOfTheTextbook) {
  EXPECT_THAT(PadeCoefficients(3),
              ElementsAre(1, 0.5, DoubleEq(0.1), DoubleEq(1.0 / 120)));
  const std::vector<double> c = PadeCoefficients(13);
  ASSERT_EQ(c.size(), 14u);
  EXPECT_DOUBLE_EQ(c[1], 0.5);
  EXPECT_DOUBLE_EQ(c[13], 1 / 64764752532480000.0);
}

/// What is chosen of a number `x`, or a matrix that is like one.
ExponentialChoice ChoiceOf(double x, bool is_single) {
  ExponentialChooser chooser(x, is_single);
  const double scaled = std::ldexp(x, -chooser.power_before());
  const auto log2_of_power = [&](int power) {
    return power * std::log2(scaled);
  };
  if (!chooser.TakesSquare(std::pow(scaled, 2), log2_of_power) &&
      !chooser.TakesFourth(std::pow(scaled, 4), log2_of_power)) {
    chooser.TakeSixth(std::pow(scaled, 6), log2_of_power);
  }
  return chooser.choice();
}

TEST(ExponentialChooserTest, DegreesAndSquaringsGrowWithTheNorm) {
  struct {
    double norm;
    int degree, squarings, single_degree, single_squarings;
  } const cases[] = {{0, 3, 0, 3, 0},    {1e-200, 3, 0, 3, 0},
                     {0.01, 3, 0, 3, 0}, {0.2, 5, 0, 3, 0},
                     {0.9, 7, 0, 5, 0},  {2, 9, 0, 7, 0},
                     {5, 13, 0, 7, 1},   {5.4, 13, 1, 7, 1},
                     {40, 13, 3, 7, 4},  {1e6, 13, 18, 7, 18}};
  for (const auto& [norm, degree, squarings, single_degree, single_squarings] :
       cases) {
    const ExponentialChoice choice = ChoiceOf(norm, false);
    EXPECT_EQ(choice.degree, degree) << norm;
    EXPECT_EQ(choice.squarings, squarings) << norm;
    const ExponentialChoice single = ChoiceOf(norm, true);
    EXPECT_EQ(single.degree, single_degree) << norm;
    EXPECT_EQ(single.squarings, single_squarings) << norm;
  }
}

TEST(BalancingPowerTest, BringsColumnsAndRowsTogether) {
  EXPECT_EQ(BalancingPower(10, 4, 2), 3);
  EXPECT_EQ(BalancingPower(4, 10, 2), -3);
  EXPECT_EQ(BalancingPower(10, 4, 4), 2);
  EXPECT_EQ(BalancingPower(4, 9, 4), -1);
  EXPECT_EQ(BalancingPower(5, 4, 4), 0);
  // What stands alone becomes 1 at most.
  EXPECT_EQ(BalancingPower(kOfZero, 10, 2), -11);
  EXPECT_EQ(BalancingPower(10, kOfZero, 2), 11);
  EXPECT_EQ(BalancingPower(kOfZero, 10, 4), -6);
  EXPECT_EQ(BalancingPower(10, kOfZero, 4), 6);
  EXPECT_EQ(BalancingPower(kOfZero, -10, 2), 0);
  EXPECT_EQ(BalancingPower(-10, kOfZero, 2), 0);
  EXPECT_EQ(BalancingPower(kOfZero, kOfZero, 2), 0);
}

TEST(ExponentialChooserTest, HugeNormsAreScaledBeforePowersOverflow) {
  for (const double norm : {1e200, std::numeric_limits<double>::max(),
                            std::numeric_limits<double>::infinity()}) {
    const ExponentialChooser chooser(norm, false);
    const double scaled =
        std::ldexp(std::isfinite(norm) ? norm : 1.0, -chooser.power_before());
    EXPECT_TRUE(std::isfinite(std::pow(scaled, 6)));
    EXPECT_GT(chooser.power_before(), 500);
  }
}

// As of a matrix whose square is 0: no power asks for anything.
TEST(ExponentialChooserTest, NilpotentMatricesAreNotSquared) {
  ExponentialChooser chooser(1e10, false);
  const auto nothing = [](int) {
    return -std::numeric_limits<double>::infinity();
  };
  EXPECT_TRUE(chooser.TakesSquare(0, nothing));
  EXPECT_EQ(chooser.choice().degree, 3);
  EXPECT_EQ(chooser.choice().squarings, 0);
}

// Small powers of large absolute values: squared as those need.
TEST(ExponentialChooserTest, LargeAbsoluteValuesAreHeard) {
  ExponentialChooser chooser(100, false);
  const auto log2_of_power = [](int power) { return power * std::log2(100); };
  EXPECT_FALSE(chooser.TakesSquare(0.01, log2_of_power));
  EXPECT_FALSE(chooser.TakesFourth(0.0001, log2_of_power));
  chooser.TakeSixth(1e-6, log2_of_power);
  EXPECT_EQ(chooser.choice().degree, 13);
  EXPECT_EQ(chooser.choice().squarings, 5);
}

}  // namespace
}  // namespace tensord::core
