#include "core/base/status.h"

#include "gtest/gtest.h"

namespace tensord::core {
namespace {

TEST(StatusTest, ReasonTravelsWithTheMessage) {
  const absl::Status status =
      InvalidArgument("MODE_EXTENT_MISMATCH", "mode 'k' has extent ", 128,
                      " in a but ", 64, " in b");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "mode 'k' has extent 128 in a but 64 in b");
  EXPECT_EQ(ReasonOf(status), "MODE_EXTENT_MISMATCH");
}

TEST(StatusTest, OtherStatusesHaveNoReason) {
  EXPECT_EQ(ReasonOf(absl::OkStatus()), "");
  EXPECT_EQ(ReasonOf(absl::InternalError("lost")), "");
}

absl::StatusOr<int> Twice(const absl::StatusOr<int>& x) {
  TENSORD_ASSIGN_OR_RETURN(const int value, x);
  return 2 * value;
}

absl::Status Check(const absl::Status& status, bool& went_on) {
  TENSORD_RETURN_IF_ERROR(status);
  went_on = true;
  return absl::OkStatus();
}

TEST(StatusTest, MacrosPassErrorsOnAndValuesThrough) {
  EXPECT_EQ(Twice(21).value(), 42);
  EXPECT_EQ(ReasonOf(Twice(NotFound("NAME_UNKNOWN", "x")).status()),
            "NAME_UNKNOWN");
  bool went_on = false;
  EXPECT_FALSE(Check(Internal("LAUNCH_FAILED", "x"), went_on).ok());
  EXPECT_FALSE(went_on);
  EXPECT_TRUE(Check(absl::OkStatus(), went_on).ok());
  EXPECT_TRUE(went_on);
}

}  // namespace
}  // namespace tensord::core
