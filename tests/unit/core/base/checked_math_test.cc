#include "core/base/checked_math.h"

#include <limits>

#include "gtest/gtest.h"

namespace tensord::core {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(CheckedMathTest, SumsThatFitAreGiven) {
  EXPECT_EQ(CheckedAdd(2, 3), 5);
  EXPECT_EQ(CheckedAdd(kMax - 1, 1), kMax);
  EXPECT_EQ(CheckedAdd(kMax, kMin), -1);
}

TEST(CheckedMathTest, SumsThatDoNotFitAreRefused) {
  EXPECT_EQ(CheckedAdd(kMax, 1), std::nullopt);
  EXPECT_EQ(CheckedAdd(kMin, -1), std::nullopt);
}

TEST(CheckedMathTest, ProductsThatFitAreGiven) {
  EXPECT_EQ(CheckedMultiply(int64_t{1} << 31, int64_t{1} << 31),
            int64_t{1} << 62);
  EXPECT_EQ(CheckedMultiply(kMax, 0), 0);
  EXPECT_EQ(CheckedMultiply(kMin, 1), kMin);
}

TEST(CheckedMathTest, ProductsThatDoNotFitAreRefused) {
  EXPECT_EQ(CheckedMultiply(int64_t{1} << 32, int64_t{1} << 31), std::nullopt);
  EXPECT_EQ(CheckedMultiply(kMin, -1), std::nullopt);
}

TEST(CheckedMathTest, RoundUpGivesTheNextMultiple) {
  EXPECT_EQ(RoundUp(0, 256), 0);
  EXPECT_EQ(RoundUp(1, 256), 256);
  EXPECT_EQ(RoundUp(256, 256), 256);
  EXPECT_EQ(RoundUp(257, 256), 512);
}

}  // namespace
}  // namespace tensord::core
