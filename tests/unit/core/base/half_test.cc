#include "core/base/half.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <type_traits>

#include "core/base/element_type.h"
#include "gtest/gtest.h"
#include "tests/testing/oracle/number.h"

namespace tensord::core {
namespace {

template <typename T>
constexpr ElementType kTypeOf =
    std::is_same_v<T, Half> ? ElementType::kFloat16 : ElementType::kBfloat16;

template <typename T>
class SixteenBitsTest : public ::testing::Test {
 protected:
  /// The 16 bits nearest to `value`, by the tests' own arithmetic.
  static uint16_t Reference(float value) {
    uint16_t bits;
    tensord::test::StoreNumber(kTypeOf<T>,
                               static_cast<tensord::test::Real>(value),
                               reinterpret_cast<std::byte*>(&bits));
    return bits;
  }
};
using SixteenBitTypes = ::testing::Types<Half, Bfloat16>;
TYPED_TEST_SUITE(SixteenBitsTest, SixteenBitTypes);

TYPED_TEST(SixteenBitsTest, EveryValueIsWhatItsBitsSay) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const TypeParam x{static_cast<uint16_t>(bits)};
    const tensord::test::Real expected =
        tensord::test::LoadNumber(kTypeOf<TypeParam>,
                                  reinterpret_cast<const std::byte*>(&x))
            .real();
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(x.ToFloat())) << bits;
    } else {
      EXPECT_EQ(static_cast<tensord::test::Real>(x.ToFloat()), expected)
          << bits;
      EXPECT_EQ(std::signbit(x.ToFloat()), bits >> 15 == 1) << bits;
    }
  }
}

TYPED_TEST(SixteenBitsTest, EveryValueComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const TypeParam x{static_cast<uint16_t>(bits)};
    const TypeParam back = TypeParam::From(x.ToFloat());
    if (std::isnan(x.ToFloat())) {
      EXPECT_TRUE(std::isnan(back.ToFloat())) << bits;
    } else {
      EXPECT_EQ(back.bits, bits);
    }
  }
}

TYPED_TEST(SixteenBitsTest, MidpointsGoToTheEvenNeighbour) {
  for (uint32_t bits = 0; bits < 0x7fff; ++bits) {
    const float low = TypeParam{static_cast<uint16_t>(bits)}.ToFloat();
    const float high = TypeParam{static_cast<uint16_t>(bits + 1)}.ToFloat();
    if (!std::isfinite(high) || std::isnan(low)) break;
    const float middle = low + (high - low) / 2;
    const auto even = static_cast<uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(TypeParam::From(middle).bits, even) << bits;
    EXPECT_EQ(TypeParam::From(-middle).bits, even | 0x8000) << bits;
    EXPECT_EQ(TypeParam::From(std::nextafter(middle, low)).bits, bits);
    EXPECT_EQ(TypeParam::From(std::nextafter(middle, high)).bits, bits + 1);
  }
}

TYPED_TEST(SixteenBitsTest, AnyFloatRoundsToNearest) {
  std::mt19937 rng(1);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(rng()));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(TypeParam::From(value).ToFloat()));
    } else {
      EXPECT_EQ(TypeParam::From(value).bits, this->Reference(value)) << value;
    }
  }
}

TYPED_TEST(SixteenBitsTest, BeyondTheRangeIsInfinity) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(TypeParam::From(kInfinity).ToFloat(), kInfinity);
  EXPECT_EQ(TypeParam::From(-kInfinity).ToFloat(), -kInfinity);
  EXPECT_EQ(TypeParam::From(std::numeric_limits<float>::max()).ToFloat(),
            kInfinity);
}

TEST(HalfTest, LargestIsKeptAndTheNextMidpointOverflows) {
  EXPECT_EQ(Half::From(65504.0f).bits, 0x7bff);
  EXPECT_EQ(Half::From(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(Half::From(65520.0f).bits, 0x7c00);
}

TEST(HalfTest, SmallestSubnormalIsKeptAndItsHalfIsZero) {
  EXPECT_EQ(Half::From(0x1p-24f).bits, 1);
  EXPECT_EQ(Half::From(0x1p-25f).bits, 0);
  EXPECT_EQ(Half::From(-0x1p-26f).bits, 0x8000);
}

TEST(HalfTest, SignallingNanBecomesQuietWithItsPayload) {
  const Half x = Half::From(std::bit_cast<float>(0xff802000u));
  EXPECT_EQ(x.bits, 0xfe01);
}

}  // namespace
}  // namespace tensord::core
