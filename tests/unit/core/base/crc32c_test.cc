#include "core/base/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace tensord::core {
namespace {

// RFC 3720, B.4, and the check value of the catalogue of CRCs.
TEST(Crc32cTest, GivesThePublishedValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(Crc32cTest, GoesOnWhereItEnded) {
  std::string text;
  for (int i = 0; i < 100; ++i) text.push_back(static_cast<char>(7 * i));
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    ASSERT_EQ(Crc32c(text.substr(cut), Crc32c(text.substr(0, cut))),
              Crc32c(text));
  }
}

}  // namespace
}  // namespace tensord::core
