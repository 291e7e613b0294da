#include "server/rpc/status.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "google_rpc/status.pb.h"
#include "server/engine/quota.h"
namespace tensord::rpc {
namespace {

TEST(StatusTest, EveryCodeHasItsOwnNameAndACutensorStatus) {  // A0.10, A6
  std::set<std::string> names;
  for (int code = 0; code <= 16; ++code) {
    names.emplace(
        absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
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

// As clients of any kind understand it: a google.rpc.Status with a RetryInfo.
TEST(StatusTest, WhenToRetryIsToldToAllClients) {
  const absl::Status quota =
      server::QuotaExceeded({.tenant = "chemistry",
                             .quota = "queued",
                             .limit = 5,
                             .used = 5,
                             .retry_after = absl::Milliseconds(2500)},
                            1);
  WireCall call;
  const grpc::Status sent = ToGrpc(quota, call, "id");
  google_rpc::Status status;
  ASSERT_TRUE(status.ParseFromString(sent.error_details()));
  EXPECT_EQ(status.code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(status.message(), sent.error_message());
  ASSERT_EQ(status.details_size(), 1);
  EXPECT_EQ(status.details(0).type_url(),
            "type.googleapis.com/google.rpc.RetryInfo");
  google_rpc::RetryInfo info;
  ASSERT_TRUE(info.ParseFromString(status.details(0).value()));
  EXPECT_EQ(info.retry_delay().seconds(), 2);
  EXPECT_EQ(info.retry_delay().nanos(), 500'000'000);
  WireCall other;
  EXPECT_EQ(ToGrpc(absl::NotFoundError("none"), other, "id").error_details(),
            "");
}

std::string MessageOf(const std::string& message) {
  WireCall call;
  return ToGrpc(absl::InvalidArgumentError(message), call, "id")
      .error_message();
}

TEST(StatusTest, MessagesAreCutBetweenCharacters) {
  const std::string prefix(1998, 'x');
  EXPECT_EQ(MessageOf(prefix + "yz"), prefix + "yz");
  EXPECT_EQ(MessageOf(prefix + "yz and more"), prefix + "yz");
  EXPECT_EQ(MessageOf(prefix + "\xe2\x82\xac"), prefix);  // three bytes
  EXPECT_EQ(MessageOf(prefix + "\xc3\xa9z"), prefix + "\xc3\xa9");
}

// A name that was cut, or never was UTF-8, is quoted by the message.
TEST(StatusTest, MessagesAreValidUtf8) {
  const std::string valid =
      "a\n\x01\x7f \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf";
  EXPECT_EQ(MessageOf(valid), valid);
  for (const std::string bytes :
       {"\xff", "\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98",
        "\xc0\x80",                          // overlong
        "\xe0\x80\x80", "\xf0\x80\x80\x80",  // overlong
        "\xed\xa0\x80",                      // a surrogate
        "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"}) {
    EXPECT_EQ(MessageOf("'" + bytes + "'"),
              "'" + std::string(bytes.size(), '?') + "'");
  }
  EXPECT_EQ(MessageOf(std::string(5000, '\x80')), std::string(2000, '?'));
}

}  // namespace
}  // namespace tensord::rpc
