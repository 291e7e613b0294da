#include "server/execution/prepared.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

namespace tensord::server {
namespace {

using ::testing::HasSubstr;

class Heavy final : public Prepared {
 public:
  int64_t size_bytes() const override { return kMostBytes / 2 + 1; }
};

TEST(PreparedTest, ASessionsPlansAndProgramsAreBoundedTogether) {
  const auto ledger = std::make_shared<std::atomic<int64_t>>(0);
  Heavy kept;
  EXPECT_TRUE(kept.CountAgainst(ledger).ok());
  {
    Heavy refused;
    const absl::Status status = refused.CountAgainst(ledger);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(core::ReasonOf(status), "PREPARED_TOO_LARGE");
    EXPECT_THAT(status.message(), HasSubstr("plans and programs have"));
  }
  EXPECT_EQ(*ledger, kept.size_bytes());
}

}  // namespace
}  // namespace tensord::server
