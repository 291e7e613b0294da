#include "client/cpp/src/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "client/cpp/src/errors.h"
#include "tensord/status.h"
#include "tests/testing/places.h"

namespace tensord::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A file of this text in the test's folder.
std::string FileOf(const std::string& name, const std::string& text) {
  const std::string path = testing::TemporaryFolder() + "/" + name;
  std::ofstream(path) << text;
  return path;
}

TEST(AccessTest, OnlyLoopbackAndUnixSocketsAreLocal) {
  for (const char* address : {"unix:/run/tensord", "localhost:1", "LocalHost:1",
                              "127.0.0.1:1", "127.9.9.9:1", "[::1]:1"}) {
    EXPECT_TRUE(IsLocal(address)) << address;
  }
  for (const char* address :
       {"gpu7:1", "128.0.0.1:1", "127.0.0.1.org:1", "localhost.org:1", "[::]:1",
        "0.0.0.0:1", "[2001:db8::1]:1", "dns:///localhost:1"}) {
    EXPECT_FALSE(IsLocal(address)) << address;
  }
}

TEST(AccessTest, TokensLeaveTheMachineWithTlsOnly) {
  const Credentials credentials{.token = "very-secret"};
  for (const char* address : {"unix:/run/tensord", "127.0.0.1:1"}) {
    const auto access = Access::Resolve(address, credentials);
    ASSERT_TRUE(access.ok()) << access.status();
    EXPECT_EQ((*access)->authorization(), "Bearer very-secret");
  }
  const absl::Status refused =
      Access::Resolve("gpu7:8470", credentials).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(refused), "TOKEN_WITHOUT_TLS");
  EXPECT_THAT(refused.ToString(), Not(HasSubstr("very-secret")));
  EXPECT_TRUE(
      Access::Resolve("gpu7:8470", {.ca = "system", .token = "very-secret"})
          .ok());
}

TEST(AccessTest, MalformedTokensAreNotShown) {
  const std::string file = FileOf("malformed", "very\nsecret");
  for (const Credentials& credentials :
       {Credentials{.token = "very secret"}, Credentials{.token = "secret\n"},
        Credentials{.token_file = file}}) {
    const absl::Status refused =
        Access::Resolve("localhost:1", credentials).status();
    EXPECT_EQ(ReasonOf(refused), "TOKEN_MALFORMED");
    EXPECT_THAT(refused.ToString(), Not(HasSubstr("secret")));
  }
}

TEST(AccessTest, FilesThatAreSomethingElseAreNamed) {
  const std::string text = FileOf("text", "nothing");
  const std::string cert =
      FileOf("cert", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----");
  const std::string locked =
      FileOf("locked", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n");
  const std::string folder = testing::TemporaryFolder();
  const struct {
    Credentials credentials;
    std::string cause;
  } cases[] = {
      {{.ca = folder + "/none"}, "ca is " + folder + "/none: No such file"},
      {{.ca = folder}, "Is a directory"},
      {{.ca = text}, "it holds no CERTIFICATE in PEM"},
      {{.cert = cert}, "cert is " + cert + ": it holds no PRIVATE KEY in PEM"},
      {{.cert = cert, .key = locked}, "it is encrypted"},
      {{.key = locked}, "there is no cert that it is the key of"},
      {{.token_file = folder + "/none"}, "token_file is " + folder}};
  for (const auto& [credentials, cause] : cases) {
    const absl::Status refused =
        Access::Resolve("localhost:1", credentials).status();
    EXPECT_EQ(ReasonOf(refused), "CREDENTIALS_UNREADABLE") << cause;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(cause));
  }
}

TEST(TokenTest, AFileThatIsReplacedIsReadAgain) {
  // As Kubernetes does it: by a link that is swapped.
  const std::string folder = testing::TemporaryFolder();
  const std::string link = folder + "/token";
  const auto swap = [&](const std::string& target) {
    std::filesystem::create_symlink(target, link + ".new");
    std::filesystem::rename(link + ".new", link);
  };
  swap(FileOf("first", "first\n"));
  const auto token = Token::Read("token_file", "", link);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ((*token)->authorization(), "Bearer first");
  swap(FileOf("second", "second\n"));
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while ((*token)->authorization() == "Bearer first" &&
         absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ((*token)->authorization(), "Bearer second");
}

TEST(StatusTest, TellsWhenToRetry) {
  v1::Error error;
  error.set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_FALSE(RetryAfterOf(FromProto(error)).has_value());
  error.mutable_detail()->mutable_retry_after()->set_seconds(2);
  error.mutable_detail()->mutable_retry_after()->set_nanos(500'000'000);
  EXPECT_EQ(RetryAfterOf(FromProto(error)), absl::Milliseconds(2500));
  EXPECT_FALSE(RetryAfterOf(absl::OkStatus()).has_value());
}

}  // namespace
}  // namespace tensord::internal
