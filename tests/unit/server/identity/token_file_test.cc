#include "server/identity/token_file.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

NewToken Made(const std::string& tenant = "chemistry",
              const std::string& role = "user",
              absl::Time expires = absl::InfiniteFuture()) {
  auto made = MakeToken(tenant, role, expires);
  EXPECT_TRUE(made.ok());
  return *std::move(made);
}

TEST(TokenFileTest, TokensAreReadAsTheyWereWritten) {
  const absl::Time expires = absl::FromUnixSeconds(2'000'000'000);
  const NewToken one = Made("chemistry", "user", expires);
  const NewToken two = Made("ops.team-1", "operator");
  const auto tokens = ParseTokens(
      "tokens", absl::StrCat("# made by hand\n\n", FormatToken(one.token), "  ",
                             FormatToken(two.token)));
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(*tokens, (std::vector<Token>{one.token, two.token}));
}

TEST(TokenFileTest, SecretsAreTheirOwnTokensAlone) {
  const NewToken one = Made(), two = Made();
  EXPECT_TRUE(IsSecretOf(one.token, one.secret));
  EXPECT_FALSE(IsSecretOf(one.token, two.secret));
  EXPECT_FALSE(IsSecretOf(one.token, one.secret + "x"));
  EXPECT_FALSE(IsSecretOf(one.token, ""));
  EXPECT_FALSE(IsSecretOf(Token(), one.secret));
  EXPECT_EQ(TokenIdOf(one.secret), one.token.id);
  EXPECT_EQ(FormatToken(one.token).find(one.secret.substr(17)),
            std::string::npos);
}

TEST(TokenFileTest, WhatIsNoSecretHasNoId) {
  for (const char* const text : {"", "tensord_", "tensord_12345678",
                                 "tensord_12345678_", "x", "a.b.c"}) {
    EXPECT_FALSE(TokenIdOf(text)) << text;
  }
}

TEST(TokenFileTest, BadLinesAreNamedWithTheirNumber) {
  const Token good = Made().token;
  const auto with = [&](auto change) {
    Token token = good;
    change(token);
    return FormatToken(token);
  };
  const std::string lines[] = {
      "a line",
      with([](Token& token) { token.id = "1234567g"; }),
      with([](Token& token) { token.tenant = "Chemistry"; }),
      with([](Token& token) { token.role = "admin"; }),
      with([](Token& token) { token.salt = "00"; }),
      with([](Token& token) { token.hash += "0"; }),
      absl::StrCat(good.id, " t user soon ", good.salt, " ", good.hash),
      FormatToken(good),  // the same again
  };
  for (const std::string& line : lines) {
    const auto tokens = ParseTokens(
        "/etc/tokens", absl::StrCat(FormatToken(good), "#\n", line));
    EXPECT_EQ(core::ReasonOf(tokens.status()), "TOKEN_FILE_MALFORMED") << line;
    EXPECT_EQ(tokens.status().message().substr(0, 14), "/etc/tokens:3:")
        << line;
  }
}

TEST(TokenFileTest, TenantsHavePlainNames) {
  for (const char* const name : {"a", "team-1", "0", "a.b_c"}) {
    EXPECT_TRUE(IsTenantName(name)) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("-a"), std::string("A"), std::string("a b"),
        std::string("a/b"), std::string(64, 'a')}) {
    EXPECT_FALSE(IsTenantName(name)) << name;
  }
}

}  // namespace
}  // namespace tensord::server
