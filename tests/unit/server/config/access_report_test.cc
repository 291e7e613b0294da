#include "server/config/access_report.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tensord::server {
namespace {

/// What a server with these flags says.
struct Said {
  OperatorsReport operators;
  AccessReport access;
};
Said ReportOf(std::vector<const char*> flags) {
  flags.insert(flags.begin(), "tensord");
  const char* const no_environment[] = {nullptr};
  const auto parsed = ParseOptions(static_cast<int>(flags.size()), flags.data(),
                                   no_environment);
  const auto* const options = std::get_if<Options>(&parsed);
  if (options == nullptr) {
    ADD_FAILURE() << "the flags are not good";
    return {};
  }
  const auto authenticator = Authenticator::Create(options->identity);
  EXPECT_TRUE(authenticator.ok()) << authenticator.status();
  return {.operators = ReportOperators(*options, **authenticator),
          .access = ReportAccess(*options, **authenticator)};
}

constexpr const char* kTls[] = {"--tls-certificate=c", "--tls-key=k"};

TEST(AccessReportTest, WhoReachesALocalServerIsAnOperator) {
  const Said said = ReportOf({"--listen=localhost:8470"});
  EXPECT_EQ(said.operators.who, "everybody");
  EXPECT_EQ(said.operators.why,
            "nobody is asked who they are; this machine alone is served");
  EXPECT_EQ(said.access.anybody, "health checks");
  EXPECT_EQ(said.access.users, "everybody who reaches localhost:8470");
  EXPECT_EQ(said.access.operators, "calls of operators");
}

TEST(AccessReportTest, WhoComesFromElsewhereIsNone) {
  const Said said = ReportOf({"--listen=0.0.0.0:8470", "--insecure"});
  EXPECT_EQ(said.operators.who, "everybody on this machine");
  EXPECT_EQ(said.access.users, "everybody who reaches 0.0.0.0:8470");
}

TEST(AccessReportTest, BeyondLoopbackOperatorsAreNamed) {
  const std::vector<const char*> flags = {"--listen=0.0.0.0:8470", kTls[0],
                                          kTls[1], "--tls-client-ca=a"};
  EXPECT_EQ(ReportOf(flags).operators.who, "nobody");
  EXPECT_EQ(ReportOf(flags).operators.why,
            "neither --operators nor --tenants names any");
  std::vector<const char*> named = flags;
  named.push_back("--operators=chief");
  const Said said = ReportOf(named);
  EXPECT_EQ(said.operators.who, "certificate chief");
  EXPECT_EQ(said.operators.why, "as said by --operators");
  EXPECT_EQ(said.access.users, "certificates of --tls-client-ca");
}

TEST(AccessReportTest, OnLoopbackEveryCertificateIsOneUntilOneIsNamed) {
  const std::vector<const char*> flags = {"--listen=localhost:8470", kTls[0],
                                          kTls[1], "--tls-client-ca=a"};
  EXPECT_EQ(ReportOf(flags).operators.who,
            "every certificate of --tls-client-ca");
  std::vector<const char*> named = flags;
  named.push_back("--operators=chief");
  EXPECT_EQ(ReportOf(named).operators.who, "certificate chief");
}

TEST(AccessReportTest, OfManyItNamesTen) {
  std::string names = "--operators=o00";
  for (int i = 1; i < 13; ++i) absl::StrAppend(&names, ",o", 10 + i);
  const Said said = ReportOf({"--listen=0.0.0.0:8470", kTls[0], kTls[1],
                              "--tls-client-ca=a", names.c_str()});
  EXPECT_TRUE(said.operators.who.ends_with(", and 3 more"))
      << said.operators.who;
}

TEST(AccessReportTest, SaysWhereProbesMetricsAndOperatorsAre) {
  const Said said =
      ReportOf({"--listen=0.0.0.0:8470", "--insecure", "--admin-listen=unix:/a",
                "--probe-listen=127.0.0.1:1", "--metrics-listen=127.0.0.1:2"});
  EXPECT_EQ(said.access.anybody,
            "health checks, probes at 127.0.0.1:1, metrics at 127.0.0.1:2");
  EXPECT_EQ(said.access.operators, "calls of operators at unix:/a alone");
}

}  // namespace
}  // namespace tensord::server
