// Servers and clients that know each other by certificates and tokens.
#include "tensord/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cpp/src/channels.h"
#include "tensord/session.h"
#include "tests/testing/places.h"
#include "tests/testing/server_process.h"
#include "tests/unit/client/credentials.h"

namespace tensord {
namespace {

using ::testing::HasSubstr;
using testing::ServerProcess;

class CredentialsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const char* name : {"known", "foreign"}) {
      testing::MakeCertificates(testing::TemporaryFolder() + "/" + name);
    }
    server_.emplace(
        testing::Built("tensord"),
        std::vector<std::string>{"--listen=localhost:0",
                                 "--tls-certificate=" + Path("known/server"),
                                 "--tls-key=" + Path("known/server-key"),
                                 "--tls-client-ca=" + Path("known/ca")});
  }
  static void TearDownTestSuite() { server_.reset(); }

  static std::string Path(const std::string& name) {
    return testing::TemporaryFolder() + "/" + name + ".pem";
  }

  /// Of a client that `authority` knows, and that knows the server.
  static Credentials Client(const std::string& authority) {
    return {.ca = Path("known/ca"),
            .cert = Path(authority + "/client"),
            .key = Path(authority + "/client-key")};
  }

  static absl::Status Connect(const std::string& address,
                              const Credentials& credentials) {
    return Session::Connect(address, {.credentials = credentials}).status();
  }

  static std::optional<ServerProcess> server_;
};

std::optional<ServerProcess> CredentialsTest::server_;

TEST_F(CredentialsTest, CallsOfEveryKindPassWithCertificates) {
  auto session =
      Session::Connect(server_->TcpAddress(), {.credentials = Client("known")});
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<double> values(300'000);
  std::iota(values.begin(), values.end(), 0);
  const HostView<double> view{values.data(), {300, 1000}};
  const auto a = session->Upload(view);
  ASSERT_TRUE(a.ok()) << a.status();
  auto pipeline = session->StartPipeline();
  auto copy = pipeline.Permute({*a, "ij"}, "ij");
  EXPECT_TRUE(pipeline.Finish().ok());
  const auto result = copy.Await();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->Download<double>().value(), values);
}

TEST_F(CredentialsTest, TheEnvironmentNamesTheFiles) {
  const Credentials client = Client("known");
  setenv("TENSORD_CA", client.ca.c_str(), 1);
  setenv("TENSORD_CERT", client.cert.c_str(), 1);
  setenv("TENSORD_KEY", client.key.c_str(), 1);
  EXPECT_TRUE(Connect(server_->TcpAddress(), {}).ok());
  setenv("TENSORD_CA", "/nowhere", 1);
  EXPECT_THAT(std::string(Connect(server_->TcpAddress(), {}).message()),
              HasSubstr("$TENSORD_CA is /nowhere: No such file"));
  EXPECT_TRUE(Connect(server_->TcpAddress(), {.ca = client.ca}).ok());
  unsetenv("TENSORD_CA");
  unsetenv("TENSORD_CERT");
  unsetenv("TENSORD_KEY");
}

TEST_F(CredentialsTest, WhatKeepsTlsFromComingAboutIsNamed) {
  const ServerProcess plain(testing::Built("tensord"),
                            {"--listen=localhost:0"});
  const std::string address = server_->TcpAddress();
  Credentials foreign_ca = Client("known");
  foreign_ca.ca = Path("foreign/ca");
  Credentials mixed = Client("known");
  mixed.key = Client("foreign").key;
  const struct {
    std::string address;
    Credentials credentials;
    std::string cause;
  } cases[] = {
      {address, {}, "it may speak TLS, which needs ca or $TENSORD_CA"},
      {address, foreign_ca, "(" + foreign_ca.ca + ") signed it"},
      {address, {.ca = "system"}, "(the system's) signed it"},
      {address, {.ca = Path("known/ca")}, "may want the client's cert and key"},
      {address, Client("foreign"), "it refuses the client's cert"},
      {address, mixed, mixed.key + " is not the key of " + mixed.cert},
      {plain.TcpAddress(), Client("known"), "does not speak TLS"}};
  for (const auto& [to, credentials, cause] : cases) {
    const absl::Status refused = Connect(to, credentials);
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << cause;
    EXPECT_EQ(ReasonOf(refused), "TLS_HANDSHAKE_FAILED") << cause;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("cannot connect to " + to + ": "));
    EXPECT_THAT(std::string(refused.message()), HasSubstr(cause));
  }
}

TEST_F(CredentialsTest, CertificatesAreForNames) {
  const ServerProcess other(
      testing::Built("tensord"),
      {"--listen=127.0.0.2:0", "--tls-certificate=" + Path("known/server"),
       "--tls-key=" + Path("known/server-key")});
  for (const Credentials& credentials :
       {Credentials{.ca = Path("known/ca")}, Client("known")}) {
    EXPECT_THAT(std::string(Connect(other.TcpAddress(), credentials).message()),
                HasSubstr("the server's certificate is not for 127.0.0.2"));
  }
}

TEST_F(CredentialsTest, ARenewedCertificateIsShownToTheNextConnection) {
  namespace fs = std::filesystem;
  Credentials credentials{.ca = Path("known/ca"),
                          .cert = Path("renewed"),
                          .key = Path("renewed-key")};
  const auto renew = [&](const Credentials& from) {
    const auto replace = fs::copy_options::overwrite_existing;
    fs::copy_file(from.key, credentials.key, replace);
    fs::copy_file(from.cert, credentials.cert, replace);
  };
  renew(Client("foreign"));
  const internal::Channels channels(server_->TcpAddress(), absl::Seconds(60),
                                    credentials);
  const auto ask = [&](bool wait_for_ready) {
    return channels
        .Call(channels.admin, &v1::AdminService::Stub::GetServerInfo,
              v1::GetServerInfoRequest(), absl::InfinitePast(), wait_for_ready)
        .status();
  };
  EXPECT_EQ(ReasonOf(ask(false)), "TLS_HANDSHAKE_FAILED");
  renew(Client("known"));
  const absl::Status renewed = ask(true);
  EXPECT_TRUE(renewed.ok()) << renewed;
}

TEST_F(CredentialsTest, TokensSayWhoAsks) {
  const std::string tokens = testing::TemporaryFolder() + "/tokens";
  testing::MakeTokens(tokens);
  const ServerProcess server(testing::Built("tensord"),
                             {"--listen=localhost:0", "--tokens=" + tokens});
  for (const std::string& address : {server.TcpAddress(), server.address()}) {
    const absl::Status known =
        Connect(address, {.token = testing::kTokenSecret});
    EXPECT_TRUE(known.ok()) << known;
    EXPECT_EQ(Connect(address, {}).code(), absl::StatusCode::kUnauthenticated);
    EXPECT_EQ(Connect(address, {.token = "tensord_0123abcd_other"}).code(),
              absl::StatusCode::kUnauthenticated);
  }
}

}  // namespace
}  // namespace tensord
