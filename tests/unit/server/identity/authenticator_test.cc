#include "server/identity/authenticator.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status.h"
#include "server/identity/token_file.h"

namespace tensord::server {
namespace {

class AuthenticatorTest : public ::testing::Test {
 protected:
  ~AuthenticatorTest() override { std::remove(path_.c_str()); }

  void Write(const std::string& text) { std::ofstream(path_) << text; }
  /// One that takes the tokens of the file, and certificates if asked to. Its
  /// clock stands.
  std::unique_ptr<Authenticator> Open(bool takes_certificates = false) {
    auto made = Authenticator::Create({.takes_certificates = takes_certificates,
                                       .tokens = path_,
                                       .now = [this] { return now_; }});
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  static std::string Reason(
      const absl::StatusOr<std::shared_ptr<const Identity>>& identity) {
    EXPECT_EQ(identity.status().code(), absl::StatusCode::kUnauthenticated);
    return core::ReasonOf(identity.status());
  }

  absl::Time now_ = absl::Now();
  const std::string path_ =
      absl::StrCat(::testing::TempDir(), "tokens-", getpid());
  const NewToken user_ = *MakeToken("chem", "user", absl::InfiniteFuture());
  const NewToken operator_ =
      *MakeToken("ops", "operator", absl::InfiniteFuture());
  const std::string lines_ =
      FormatToken(user_.token) + FormatToken(operator_.token);
};

TEST_F(AuthenticatorTest, EverybodyIsAnOperatorWhereNobodyIsAsked) {
  const auto open = *Authenticator::Create({});
  const auto who = open->Identify({.peer = "unix", .bearer = "whatever"});
  ASSERT_TRUE(who.ok());
  EXPECT_EQ((*who)->tenant(), "default");
  EXPECT_EQ((*who)->role(), Role::kOperator);
}

TEST_F(AuthenticatorTest, TokensSayTenantAndRole) {
  Write(lines_);
  const auto file = Open();
  for (int i = 0; i < 2; ++i) {  // proved, and remembered
    const auto user = file->Identify({.peer = "p", .bearer = user_.secret});
    ASSERT_TRUE(user.ok()) << user.status();
    EXPECT_EQ((*user)->tenant(), "chem");
    EXPECT_EQ((*user)->role(), Role::kUser);
    EXPECT_EQ((*user)->name(), "token " + user_.token.id);
    const auto op = file->Identify({.peer = "p", .bearer = operator_.secret});
    EXPECT_EQ((*op)->role(), Role::kOperator);
  }
  EXPECT_EQ(Reason(file->Identify({.peer = "p"})), "CREDENTIALS_MISSING");
  EXPECT_EQ(Reason(file->Identify({.peer = "p", .bearer = "x"})),
            "TOKEN_INVALID");
}

TEST_F(AuthenticatorTest, RevokedTokensProveNothingAndOthersStay) {
  Write(lines_);
  const auto file = Open();
  const auto user = *file->Identify({.peer = "p", .bearer = user_.secret});
  const auto op = *file->Identify({.peer = "p", .bearer = operator_.secret});
  // Nothing that happens in between makes it forget whom it knows.
  Write(lines_ +
        FormatToken(MakeToken("bio", "user", absl::InfiniteFuture())->token));
  ASSERT_TRUE(file->Reload().ok());
  EXPECT_TRUE(user->IsValid());
  Write(FormatToken(operator_.token));
  ASSERT_TRUE(file->Reload().ok());
  EXPECT_FALSE(user->IsValid());
  EXPECT_TRUE(op->IsValid());
  EXPECT_EQ(Reason(file->Identify({.peer = "p", .bearer = user_.secret})),
            "TOKEN_INVALID");
  EXPECT_TRUE(file->Identify({.peer = "p", .bearer = operator_.secret}).ok());
}

TEST_F(AuthenticatorTest, ABadFileChangesNothing) {
  Write(lines_);
  const auto file = Open();
  Write("nonsense\n");
  EXPECT_EQ(core::ReasonOf(file->Reload()), "TOKEN_FILE_MALFORMED");
  std::remove(path_.c_str());
  EXPECT_EQ(core::ReasonOf(file->Reload()), "FILE_UNREADABLE");
  EXPECT_TRUE(file->Identify({.peer = "p", .bearer = user_.secret}).ok());
}

TEST_F(AuthenticatorTest, TokensExpire) {
  const NewToken past =
      *MakeToken("chem", "user", absl::Now() - absl::Hours(1));
  Write(FormatToken(past.token));
  const auto file = Open();
  EXPECT_EQ(Reason(file->Identify({.peer = "p", .bearer = past.secret})),
            "TOKEN_EXPIRED");
}

TEST_F(AuthenticatorTest, CertificatesStandForTenants) {
  const auto file = *Authenticator::Create({.takes_certificates = true});
  const auto all = file->Identify({.peer = "p", .certificate = {"w1"}});
  ASSERT_TRUE(all.ok());
  EXPECT_EQ((*all)->role(), Role::kOperator);
  TenantsFile tenants;
  tenants.tenants["chem"].certificates = {"w1"};
  tenants.tenants["bio"].certificates = {"spiffe://x/w2"};
  tenants.tenants["ops"].operators = {"boss"};
  file->SetTenants(tenants);
  const auto who = [&](std::vector<absl::string_view> names) {
    return file->Identify({.peer = "p", .certificate = std::move(names)});
  };
  const auto w1 = *who({"w1"});
  EXPECT_EQ(w1->tenant(), "chem");
  EXPECT_EQ(w1->role(), Role::kUser);
  EXPECT_EQ((*who({"cn", "spiffe://x/w2"}))->tenant(), "bio");
  EXPECT_EQ((*who({"boss"}))->role(), Role::kOperator);
  EXPECT_EQ(Reason(who({"w3"})), "CERTIFICATE_UNKNOWN");
  EXPECT_EQ(Reason(who({"w1", "spiffe://x/w2"})), "IDENTITIES_DIFFER");
  EXPECT_EQ(Reason(who({})), "CREDENTIALS_MISSING");
  const auto boss = *who({"boss"});
  tenants.tenants["chem"].certificates = {"w2"};
  file->SetTenants(tenants);
  EXPECT_FALSE(w1->IsValid());
  EXPECT_TRUE(boss->IsValid());
}

TEST_F(AuthenticatorTest, WhereOthersAreServedOperatorsAreNamed) {
  const auto role = [](Authenticator& file, absl::string_view name) {
    return (*file.Identify({.peer = "p", .certificate = {name}}))->role();
  };
  const auto unnamed = *Authenticator::Create(
      {.takes_certificates = true, .serves_others = true});
  EXPECT_EQ(role(*unnamed, "w1"), Role::kUser);
  EXPECT_FALSE(unnamed->all_certificates_are_operators());
  EXPECT_TRUE(unnamed->operators().empty());
  for (const bool serves_others : {false, true}) {
    const auto named =
        *Authenticator::Create({.takes_certificates = true,
                                .serves_others = serves_others,
                                .operators = {"chief", "spiffe://x/o"}});
    EXPECT_EQ(role(*named, "chief"), Role::kOperator);
    EXPECT_EQ(role(*named, "w1"), Role::kUser);
    EXPECT_EQ(
        (*named->Identify({.peer = "p", .certificate = {"cn", "spiffe://x/o"}}))
            ->name(),
        "certificate spiffe://x/o");
    EXPECT_EQ(named->operators(),
              (std::vector<std::string>{"certificate chief",
                                        "certificate spiffe://x/o"}));
  }
}

TEST_F(AuthenticatorTest, OperatorsOfAFileAreBesideThoseOfOptions) {
  const auto file = *Authenticator::Create({.takes_certificates = true,
                                            .takes_users = true,
                                            .serves_others = true,
                                            .operators = {"w1", "chief"}});
  TenantsFile tenants;
  tenants.tenants["chem"].certificates = {"w1", "w2"};
  tenants.operators = {.certificates = {"boss"}, .users = {0}};
  file->SetTenants(tenants);
  const auto who = [&](absl::string_view name) {
    return *file->Identify({.peer = "p", .certificate = {name}});
  };
  EXPECT_EQ(who("w1")->tenant(), "chem");  // as the file says
  EXPECT_EQ(who("w1")->role(), Role::kOperator);
  EXPECT_EQ(who("w2")->role(), Role::kUser);
  for (const char* const name : {"chief", "boss"}) {
    EXPECT_EQ(who(name)->tenant(), "default");
    EXPECT_EQ(who(name)->role(), Role::kOperator);
  }
  const auto root = *file->Identify({.peer = "p", .user = 0});
  EXPECT_EQ(root->role(), Role::kOperator);
  EXPECT_EQ(file->operators(),
            (std::vector<std::string>{"certificate boss", "certificate chief",
                                      "certificate w1", "user 0"}));
  const auto boss = who("boss");
  tenants.operators = {};
  file->SetTenants(tenants);
  EXPECT_FALSE(root->IsValid());
  EXPECT_FALSE(boss->IsValid());
}

TEST_F(AuthenticatorTest, CertificateAndTokenAreOfOneTenant) {
  Write(lines_);
  const auto file = Open(/*takes_certificates=*/true);
  TenantsFile tenants;
  tenants.tenants["chem"].certificates = {"w1"};
  file->SetTenants(tenants);
  EXPECT_EQ((*file->Identify(
                 {.peer = "p", .certificate = {"w1"}, .bearer = user_.secret}))
                ->name(),
            "token " + user_.token.id);
  EXPECT_EQ(
      Reason(file->Identify(
          {.peer = "p", .certificate = {"w1"}, .bearer = operator_.secret})),
      "IDENTITIES_DIFFER");
  EXPECT_TRUE(file->Identify({.peer = "p", .certificate = {"w1"}}).ok());
  EXPECT_TRUE(file->Identify({.peer = "p", .bearer = operator_.secret}).ok());
}

TEST_F(AuthenticatorTest, UsersOfTheMachineStandForTenants) {
  Write(lines_);
  const auto file =
      *Authenticator::Create({.takes_users = true, .tokens = path_});
  EXPECT_TRUE(file->asks());
  TenantsFile tenants;
  tenants.tenants["chem"].users = {1001};
  tenants.tenants["ops"].operator_users = {0};
  file->SetTenants(tenants);
  const auto who = [&](uid_t user, absl::string_view bearer = "") {
    return file->Identify({.peer = "p", .user = user, .bearer = bearer});
  };
  const auto chemist = *who(1001);
  EXPECT_EQ(chemist->tenant(), "chem");
  EXPECT_EQ(chemist->role(), Role::kUser);
  EXPECT_EQ(chemist->name(), "user 1001");
  EXPECT_EQ((*who(0))->role(), Role::kOperator);
  EXPECT_EQ(Reason(who(1002)), "USER_UNKNOWN");
  EXPECT_EQ(Reason(file->Identify({.peer = "p"})), "CREDENTIALS_MISSING");
  // Whoever brings a token may be any user but another tenant's.
  EXPECT_EQ((*who(1001, user_.secret))->name(), "token " + user_.token.id);
  EXPECT_EQ((*who(1002, user_.secret))->tenant(), "chem");
  EXPECT_EQ(Reason(who(0, user_.secret)), "IDENTITIES_DIFFER");
  EXPECT_TRUE(file->Knows(1001));
  EXPECT_FALSE(file->Knows(1002));
  const auto both = *who(1001, user_.secret);
  const auto by_token = *who(1002, user_.secret);
  tenants.tenants["chem"].users = {1002};
  file->SetTenants(tenants);
  EXPECT_FALSE(chemist->IsValid());
  EXPECT_FALSE(both->IsValid());  // who was known by both
  EXPECT_TRUE(by_token->IsValid());
  EXPECT_EQ((*who(1002))->tenant(), "chem");
}

TEST_F(AuthenticatorTest, ManyWhoGuessDoNotHideWhoGuessesOn) {
  Write(lines_);
  const auto file = Open();
  const auto guess = [&](const std::string& peer) {
    return Reason(file->Identify({.peer = peer, .bearer = "guess"}));
  };
  int guesses = 0;
  while (guess("bad") != "TOO_MANY_GUESSES") ASSERT_LT(++guesses, 1000);
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_EQ(guess(absl::StrCat("peer ", i)), "TOKEN_INVALID");
  }
  EXPECT_EQ(guess("bad"), "TOO_MANY_GUESSES");
  now_ += absl::Minutes(1);
  EXPECT_EQ(guess("bad"), "TOKEN_INVALID");
}

TEST_F(AuthenticatorTest, WhoGuessesWaitsAndOthersDoNot) {
  Write(lines_);
  const auto file = Open();
  ASSERT_TRUE(file->Identify({.peer = "bad", .bearer = user_.secret}).ok());
  std::string reason;
  for (int i = 0; i < 40 && reason != "TOO_MANY_GUESSES"; ++i) {
    reason = Reason(
        file->Identify({.peer = "bad", .bearer = absl::StrCat("guess ", i)}));
  }
  EXPECT_EQ(reason, "TOO_MANY_GUESSES");
  EXPECT_EQ(Reason(file->Identify(
                {.peer = "bad", .bearer = user_.secret.substr(0, 40)})),
            "TOO_MANY_GUESSES");
  // Good ones pass, as others may have that address.
  EXPECT_TRUE(file->Identify({.peer = "bad", .bearer = operator_.secret}).ok());
  EXPECT_TRUE(file->Identify({.peer = "bad", .bearer = user_.secret}).ok());
  EXPECT_TRUE(
      file->Identify({.peer = "good", .bearer = operator_.secret}).ok());
}

}  // namespace
}  // namespace tensord::server
