#include "client/load/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tensord::load {
namespace {

using ::testing::HasSubstr;

TEST(FaultsTest, AreKindsWithNumbersOfClients) {
  const auto faults = ParseFaults("kill-upload,slow-reader=16");
  ASSERT_TRUE(faults.ok()) << faults.status();
  ASSERT_EQ(faults->size(), 2);
  EXPECT_EQ((*faults)[0].kind, FaultKind::kKillUpload);
  EXPECT_EQ((*faults)[0].count, 4);
  EXPECT_EQ((*faults)[1].kind, FaultKind::kSlowReader);
  EXPECT_EQ((*faults)[1].count, 16);
}

TEST(FaultsTest, OthersAreQuoted) {
  for (const std::string text :
       {"", "kill", "kill-upload,", "slow-reader=0", "slow-reader=x",
        "slow-reader=1001", "slow-reader="}) {
    const auto faults = ParseFaults(text);
    ASSERT_FALSE(faults.ok()) << text;
    EXPECT_THAT(std::string(faults.status().message()),
                HasSubstr("wanted kill-upload or slow-reader"));
  }
}

}  // namespace
}  // namespace tensord::load
