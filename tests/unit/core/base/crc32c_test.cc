#include "core/base/crc32c.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tensord::core {
namespace {

/// Bit by bit, from the definition: reflected polynomial 0x82f63b78.
uint32_t PlainCrc32c(std::span<const std::byte> bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const std::byte byte : bytes) {
    crc ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0u);
    }
  }
  return ~crc;
}

std::vector<std::byte> Pattern(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(i * i >> 3);
  }
  return bytes;
}

// RFC 3720, B.4, and the check value of the catalogue of CRCs.
TEST(Crc32cTest, GivesThePublishedValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(Crc32cTest, AgreesWithTheDefinitionAtEveryLengthAndAlignment) {
  const std::vector<std::byte> bytes = Pattern(600);
  for (size_t start = 0; start < 9; ++start) {
    for (size_t size = 0; size <= 530; size += 7) {
      const auto part = std::span(bytes).subspan(start, size);
      ASSERT_EQ(Crc32c(part), PlainCrc32c(part)) << start << " " << size;
    }
  }
}

TEST(Crc32cTest, GoesOnWhereItEnded) {
  const std::vector<std::byte> bytes = Pattern(100);
  const std::span whole(bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    ASSERT_EQ(Crc32c(whole.subspan(cut), Crc32c(whole.first(cut))),
              Crc32c(whole));
  }
}

TEST(Crc32cTest, CopyingGivesTheBytesAndTheirChecksum) {
  for (const size_t size : {0, 1, 16 << 10, (16 << 10) + 1, 100'000}) {
    SCOPED_TRACE(size);
    const std::vector<std::byte> from = Pattern(size);
    std::vector<std::byte> to(size);
    const uint32_t before = Crc32c("before");
    EXPECT_EQ(CopyWithCrc32c(from, to.data(), before), Crc32c(from, before));
    EXPECT_EQ(to, from);
  }
}

TEST(Crc32cTest, CopyingToMemoryWritesTheBytesAndNoOthers) {
  constexpr std::byte kOther{0xee};
  for (const size_t size : {0, 1, 15, 63, 64, 65, 200, 40'000}) {
    for (size_t start = 0; start < 70; ++start) {
      SCOPED_TRACE(testing::Message() << size << " at " << start);
      const std::vector<std::byte> from = Pattern(size);
      std::vector<std::byte> to(start + size + 70, kOther);
      std::vector<std::byte> wanted = to;
      std::copy(from.begin(), from.end(), wanted.begin() + start);
      EXPECT_EQ(CopyWithCrc32c(from, to.data() + start, 0, CopyTo::kMemory),
                Crc32c(from));
      ASSERT_EQ(to, wanted);
    }
  }
}

}  // namespace
}  // namespace tensord::core
