#include "client/cli/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cpp/src/errors.h"

namespace tensord::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(FailTest, SaysWhichRequestAFaultOfTheServerWas) {
  v1::Error error;
  error.set_code(static_cast<int32_t>(absl::StatusCode::kInternal));
  error.set_message("a launch failed");
  error.mutable_detail()->set_reason("CUDA_FAILED");
  error.mutable_detail()->set_request_id("job-7");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Fail(internal::FromProto(error)), kFailed);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "tensorctl: INTERNAL: a launch failed [CUDA_FAILED]\n"
            "It is request job-7 in the server's log.\n");
  error.set_code(static_cast<int32_t>(absl::StatusCode::kNotFound));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Fail(internal::FromProto(error)), kFailed);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              Not(HasSubstr("job-7")));
}

}  // namespace
}  // namespace tensord::cli
