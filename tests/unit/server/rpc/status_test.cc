#include "server/rpc/status.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tensord::rpc {
namespace {

TEST(StatusTest, EveryCodeHasItsOwnNameAndACutensorStatus) {  // A0.10, A6
  std::set<std::string> names;
  for (int code = 0; code <= 16; ++code) {
    names.emplace(NameOf(static_cast<absl::StatusCode>(code)));
    EXPECT_FALSE(CutensorStatus(static_cast<absl::StatusCode>(code)).empty());
  }
  EXPECT_EQ(names.size(), 17u);
}

TEST(StatusTest, CutensorStatusesAreThoseOfTheTable) {  // A6
  EXPECT_EQ(CutensorStatus(absl::StatusCode::kOk), "SUCCESS");
  EXPECT_EQ(CutensorStatus(absl::StatusCode::kInvalidArgument),
            "INVALID_VALUE");
  EXPECT_EQ(CutensorStatus(absl::StatusCode::kUnimplemented), "NOT_SUPPORTED");
  EXPECT_EQ(CutensorStatus(absl::StatusCode::kResourceExhausted),
            "ALLOC_FAILED");
  EXPECT_EQ(CutensorStatus(absl::StatusCode::kInternal), "INTERNAL_ERROR");
}

}  // namespace
}  // namespace tensord::rpc
