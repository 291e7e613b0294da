#include "client/cpp/src/crc32c.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace tensord::internal {
namespace {

uint32_t Crc32cOf(std::string_view text) {
  return Crc32c(std::as_bytes(std::span(text)));
}

/// Bit by bit, from the definition: reflected polynomial 0x82F63B78.
uint32_t PlainCrc32c(std::span<const std::byte> bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const std::byte byte : bytes) {
    crc ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0u);
    }
  }
  return ~crc;
}

TEST(Crc32cTest, KnowsTheCheckValueOfTheStandard) {
  EXPECT_EQ(Crc32cOf("123456789"), 0xE3069283u);
}

TEST(Crc32cTest, NothingIsZero) { EXPECT_EQ(Crc32cOf(""), 0u); }

TEST(Crc32cTest, KnowsTheVectorsOfRfc3720) {
  const std::vector<std::byte> zeros(32);
  EXPECT_EQ(Crc32c(zeros), 0x8A9136AAu);
  const std::vector<std::byte> ones(32, std::byte{0xff});
  EXPECT_EQ(Crc32c(ones), 0x62A8AB43u);
}

TEST(Crc32cTest, AgreesWithTheDefinitionAtEveryLengthAndAlignment) {
  std::vector<std::byte> bytes(600);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i * i >> 3);
  }
  for (size_t start = 0; start < 9; ++start) {
    for (size_t size = 0; size <= 530; size += 7) {
      const auto part = std::span(bytes).subspan(start, size);
      ASSERT_EQ(Crc32c(part), PlainCrc32c(part)) << start << " " << size;
    }
  }
}

}  // namespace
}  // namespace tensord::internal
