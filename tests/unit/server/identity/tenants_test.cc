#include "server/identity/tenants.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/status.h"

namespace tensord::server {
namespace {

TEST(TenantsTest, SharesAreRead) {
  const auto tenants = ParseTenants("tenants", R"(
[tenant.chemistry]
certificates = ["worker-1", "spiffe://cluster/chemistry"]
operators = ["chief"]
weight = 2.5
priority = 0
sessions = 100
[tenant.biology]
)");
  ASSERT_TRUE(tenants.ok()) << tenants.status();
  ASSERT_EQ(tenants->size(), 2u);
  const TenantShares& shares = tenants->at("chemistry");
  EXPECT_EQ(
      shares.certificates,
      (std::vector<std::string>{"worker-1", "spiffe://cluster/chemistry"}));
  EXPECT_EQ(shares.operators, std::vector<std::string>{"chief"});
  EXPECT_EQ(shares.weight, 2.5);
  EXPECT_EQ(shares.priority, 0);
  EXPECT_EQ(shares.sessions, 100);
  EXPECT_FALSE(tenants->at("biology").sessions.has_value());
}

TEST(TenantsTest, MistakesAreNamedWithTheirLine) {
  struct Mistake {
    std::string line, problem;
  };
  const std::vector<Mistake> mistakes = {
      {"weight = 0", "wanted a number, 0.001 to 1000"},
      {"weight = \"3\"", "wanted a number"},
      {"weight = nan", "wanted a number"},
      {"priority = 10", "wanted a whole number, 0 to 9"},
      {"priority = 1.5", "wanted a whole number"},
      {"sessions = -1", "wanted a whole number"},
      {"certificates = \"x\"", "wanted a list of names"},
      {"certificates = [\"\"]", "wanted the name of a certificate"},
      {"certificates = [1]", "wanted the name of a certificate"},
      {"operators = [\"x\", \"x\"]", "'x' stands here twice"},
      {"session = 3", "did you mean 'sessions'?"},
      {"weight 3", ""},
  };
  for (const auto& [line, problem] : mistakes) {
    const auto tenants = ParseTenants("/etc/t.toml", "[tenant.a]\n" + line);
    EXPECT_EQ(core::ReasonOf(tenants.status()), "TENANTS_MALFORMED") << line;
    EXPECT_NE(tenants.status().message().find("/etc/t.toml:2: "),
              std::string::npos)
        << tenants.status();
    EXPECT_NE(tenants.status().message().find(problem), std::string::npos)
        << tenants.status();
  }
  for (const char* const text : {"[tenants.a]", "x = 1", "[tenant.A]",
                                 "tenant = 3", "[tenant]\na = 1"}) {
    EXPECT_EQ(core::ReasonOf(ParseTenants("t", text).status()),
              "TENANTS_MALFORMED")
        << text;
  }
}

}  // namespace
}  // namespace tensord::server
