#include "server/identity/tenants.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

TEST(TenantsTest, SharesAreRead) {
  const auto tenants = ParseTenants("tenants", R"(
[tenant.chemistry]
certificates = ["worker-1", "spiffe://cluster/chemistry"]
operators = ["chief"]
users = ["root", 1001]
operator_users = [1002]
weight = 2.5
priority = 0
sessions = 100
device_bytes = "40GiB"
reserved_bytes = 1000
host_bytes = "2GB"
staging_bytes = "1MiB"
tensors = 5
queued = 6
running = 1
search_seconds = 30
[tenant.biology]
)");
  ASSERT_TRUE(tenants.ok()) << tenants.status();
  ASSERT_EQ(tenants->tenants.size(), 2u);
  const TenantShares& shares = tenants->tenants.at("chemistry");
  EXPECT_EQ(
      shares.certificates,
      (std::vector<std::string>{"worker-1", "spiffe://cluster/chemistry"}));
  EXPECT_EQ(shares.operators, std::vector<std::string>{"chief"});
  EXPECT_EQ(shares.users, (std::vector<uid_t>{0, 1001}));
  EXPECT_EQ(shares.operator_users, std::vector<uid_t>{1002});
  EXPECT_EQ(shares.weight, 2.5);
  EXPECT_EQ(shares.priority, 0);
  EXPECT_EQ(shares.sessions, 100);
  EXPECT_EQ(shares.device_bytes, int64_t{40} << 30);
  EXPECT_EQ(shares.reserved_bytes, 1000);
  EXPECT_EQ(shares.host_bytes, 2'000'000'000);
  EXPECT_EQ(shares.staging_bytes, 1 << 20);
  EXPECT_EQ(shares.tensors, 5);
  EXPECT_EQ(shares.queued, 6);
  EXPECT_EQ(shares.running, 1);
  EXPECT_EQ(shares.search_seconds, 30);
  EXPECT_FALSE(tenants->tenants.at("biology").device_bytes.has_value());
  EXPECT_FALSE(tenants->tenants.at("biology").sessions.has_value());
  EXPECT_TRUE(tenants->NamesUsers());
  EXPECT_FALSE(ParseTenants("t", "[tenant.biology]")->NamesUsers());
  EXPECT_TRUE(tenants->operators.certificates.empty());
}

TEST(TenantsTest, OperatorsMayBeOfNoTenant) {
  const auto file = ParseTenants(
      "t", "[operators]\ncertificates = ['chief']\nusers = [7, 'root']\n");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->operators.certificates, std::vector<std::string>{"chief"});
  EXPECT_EQ(file->operators.users, (std::vector<uid_t>{7, 0}));
  EXPECT_TRUE(file->tenants.empty());
  EXPECT_TRUE(file->NamesUsers());
}

TEST(TenantsTest, NobodyReservesMoreThanTheyMayHave) {
  for (const char* text : {"device_bytes = 1\nreserved_bytes = 2",
                           "reserved_bytes = 2\ndevice_bytes = 1"}) {
    const auto tenants = ParseTenants("t", absl::StrCat("[tenant.a]\n", text));
    EXPECT_EQ(core::ReasonOf(tenants.status()), "TENANTS_MALFORMED");
    EXPECT_NE(tenants.status().message().find(
                  "reserved_bytes of 2 are more than device_bytes, 1"),
              std::string::npos)
        << tenants.status();
  }
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
      {"users = 1001", "wanted a list of users"},
      {"users = [1.5]", "wanted the name or number of a user"},
      {"users = [-1]", "wanted a whole number, 0 to"},
      {"users = [4294967295]", "wanted a whole number, 0 to"},
      {"users = [\"no-such-user\"]",
       "no user of this machine has the name 'no-such-user'"},
      {"users = [\"root\", 0]", "user 0 stands here twice"},
      {"operator_users = [65534]", "stands for all whom this machine"},
      {"device_bytes = \"40 GiB\"", "wanted bytes, or e.g. \"512MiB\""},
      {"device_bytes = \"GiB\"", "wanted bytes"},
      {"device_bytes = \"99999999999TiB\"", "wanted bytes"},
      {"device_bytes = 1.5", "wanted bytes"},
      {"host_bytes = -1", "wanted a whole number"},
      {"reserved_bytes = [1]", "wanted bytes"},
      {"running = 0", "wanted a whole number, 1 to"},
      {"queued = 0", "wanted a whole number, 1 to"},
      {"search_seconds = \"3s\"", "wanted a whole number"},
      {"device_byte = 3", "did you mean 'device_bytes'?"},
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
  for (const char* const text :
       {"[tenants.a]", "x = 1", "[tenant.A]", "tenant = 3", "[tenant]\na = 1",
        "operators = ['x']", "[operators]\ncertificate = ['x']",
        "[operators]\nweight = 3",
        "[operators]\ncertificates = ['x']\n"
        "[tenant.a]\ncertificates = ['x']"}) {
    EXPECT_EQ(core::ReasonOf(ParseTenants("t", text).status()),
              "TENANTS_MALFORMED")
        << text;
  }
}

}  // namespace
}  // namespace tensord::server
