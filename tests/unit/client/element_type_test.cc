#include "tensord/element_type.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace tensord {
namespace {

TEST(ElementTypeTest, NamesReadBack) {
  for (int i = 1; i <= static_cast<int>(ElementType::kBool); ++i) {
    const auto element_type = static_cast<ElementType>(i);
    EXPECT_EQ(*ParseElementType(ToString(element_type)), element_type);
    EXPECT_GT(ElementBytes(element_type), 0);
  }
  EXPECT_FALSE(ParseElementType("float8").ok());
}

/// The value of a float16, from its definition.
double Float16Value(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  const double magnitude = exponent == 0
                               ? std::ldexp(fraction, -24)
                               : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(Float16Test, EveryFiniteValueConvertsBothWays) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits >> 10 & 0x1f) == 0x1f) continue;
    Float16 half;
    half.bits = static_cast<uint16_t>(bits);
    const float value = static_cast<float>(half);
    ASSERT_EQ(value, Float16Value(half.bits)) << bits;
    ASSERT_EQ(Float16(value).bits, half.bits) << bits;
  }
}

TEST(Float16Test, RoundsToTheNearestWithTiesToEven) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const double below = Float16Value(bits);
    const double above = Float16Value(bits + 1);
    const auto middle = static_cast<float>((below + above) / 2);
    ASSERT_EQ(Float16(middle).bits, bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(Float16(std::nextafter(middle, 0.0f)).bits, bits) << bits;
    ASSERT_EQ(Float16(std::nextafter(middle, 1e9f)).bits, bits + 1) << bits;
  }
  EXPECT_EQ(Float16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(Float16(65520.0f).bits, 0x7c00);
}

TEST(Float16Test, KeepsInfinityAndNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(Float16(-infinity)), -infinity);
  EXPECT_TRUE(std::isnan(
      static_cast<float>(Float16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Bfloat16Test, RoundsToTheNearestWithTiesToEven) {
  for (const uint32_t upper : {0x3f80u, 0x3f81u, 0xbf80u, 0x0001u, 0x7f7eu}) {
    const auto rounded = [&](uint32_t lower) -> uint32_t {
      return Bfloat16(std::bit_cast<float>(upper << 16 | lower)).bits;
    };
    EXPECT_EQ(rounded(0), upper);
    EXPECT_EQ(rounded(0x7fff), upper);
    EXPECT_EQ(rounded(0x8000), upper + upper % 2);
    EXPECT_EQ(rounded(0x8001), upper + 1);
  }
  EXPECT_TRUE(std::isnan(
      static_cast<float>(Bfloat16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace tensord
