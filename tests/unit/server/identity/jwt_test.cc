#include "server/identity/jwt.h"

#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status.h"
#include "server/identity/authenticator.h"

namespace tensord::server {
namespace {

using Json = nlohmann::json;
using Pkey = std::shared_ptr<EVP_PKEY>;

constexpr int64_t kNow = 1'800'000'000;

Pkey Rsa(size_t bits) { return {EVP_RSA_gen(bits), EVP_PKEY_free}; }
Pkey P256() { return {EVP_EC_gen("P-256"), EVP_PKEY_free}; }

std::string Encode(const std::string& bytes) {
  std::string text = absl::WebSafeBase64Escape(bytes);
  while (!text.empty() && text.back() == '=') text.pop_back();
  return text;
}

std::string NumberOf(const Pkey& key, const char* name) {
  BIGNUM* number = nullptr;
  EXPECT_EQ(EVP_PKEY_get_bn_param(key.get(), name, &number), 1);
  std::string bytes(static_cast<size_t>(BN_num_bytes(number)), '\0');
  BN_bn2bin(number, reinterpret_cast<unsigned char*>(bytes.data()));
  BN_free(number);
  return bytes;
}

/// With zeros in front.
std::string Wide(std::string bytes) {
  return std::string(32 - bytes.size(), '\0') + bytes;
}

Json RsaJwk(const Pkey& key, const std::string& id) {
  return {{"kty", "RSA"},
          {"kid", id},
          {"use", "sig"},
          {"n", Encode(NumberOf(key, OSSL_PKEY_PARAM_RSA_N))},
          {"e", Encode(NumberOf(key, OSSL_PKEY_PARAM_RSA_E))}};
}
Json EcJwk(const Pkey& key, const std::string& id) {
  return {{"kty", "EC"},
          {"crv", "P-256"},
          {"kid", id},
          {"x", Encode(Wide(NumberOf(key, OSSL_PKEY_PARAM_EC_PUB_X)))},
          {"y", Encode(Wide(NumberOf(key, OSSL_PKEY_PARAM_EC_PUB_Y)))}};
}
std::string Jwks(const std::vector<Json>& keys) {
  return Json{{"keys", keys}}.dump();
}

/// r and s one after the other, of OpenSSL's form of a signature.
std::string RawOf(const std::string& der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  ECDSA_SIG* const signature =
      d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()));
  std::string raw(64, '\0');
  auto* const bytes = reinterpret_cast<unsigned char*>(raw.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(signature), bytes, 32);
  BN_bn2binpad(ECDSA_SIG_get0_s(signature), bytes + 32, 32);
  ECDSA_SIG_free(signature);
  return raw;
}

std::string Sign(const Pkey& key, const Json& header, const Json& claims) {
  const std::string text =
      absl::StrCat(Encode(header.dump()), ".", Encode(claims.dump()));
  EVP_MD_CTX* const context = EVP_MD_CTX_new();
  EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, key.get());
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  size_t size = 0;
  EVP_DigestSign(context, nullptr, &size, bytes, text.size());
  std::string signature(size, '\0');
  EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()),
                 &size, bytes, text.size());
  EVP_MD_CTX_free(context);
  signature.resize(size);
  if (EVP_PKEY_is_a(key.get(), "EC")) signature = RawOf(signature);
  return absl::StrCat(text, ".", Encode(signature));
}

class JwtTest : public ::testing::Test {
 protected:
  JwtTest()
      : rsa_(Rsa(2048)),
        ec_(P256()),
        keys_(*JwtKeys::Parse("jwks",
                              Jwks({RsaJwk(rsa_, "r"), EcJwk(ec_, "e")}))) {}

  static Json Claims() {
    return {{"iss", "https://issuer"}, {"aud", "tensord"},
            {"sub", "alice"},          {"exp", kNow + 600},
            {"tenant", "chem"},        {"role", "operator"}};
  }
  absl::StatusOr<JwtClaims> Verify(const std::string& jwt) const {
    return keys_.Verify(jwt,
                        {.issuer = "https://issuer", .audience = "tensord"},
                        absl::FromUnixSeconds(kNow));
  }
  std::string Reason(const std::string& jwt) const {
    return core::ReasonOf(Verify(jwt).status());
  }

  const Pkey rsa_, ec_;
  const JwtKeys keys_;
  const Json kRs256 = {{"alg", "RS256"}, {"kid", "r"}};
  const Json kEs256 = {{"alg", "ES256"}, {"kid", "e"}};
};

TEST_F(JwtTest, BothKindsOfSignatureAreTaken) {
  for (const std::string& jwt :
       {Sign(rsa_, kRs256, Claims()), Sign(ec_, kEs256, Claims())}) {
    const auto claims = Verify(jwt);
    ASSERT_TRUE(claims.ok()) << claims.status();
    EXPECT_EQ(claims->tenant, "chem");
    EXPECT_EQ(claims->role, "operator");
    EXPECT_EQ(claims->subject, "alice");
  }
}

TEST_F(JwtTest, ASignatureIsWrittenInOneWayOnly) {
  const std::string token = Sign(rsa_, kRs256, Claims());
  ASSERT_TRUE(Verify(token).ok());
  EXPECT_EQ(Reason(token + " "), "TOKEN_INVALID");
  EXPECT_EQ(Reason(token + "="), "TOKEN_INVALID");
  std::string spaced = token;
  spaced.insert(token.size() - 4, "\n");
  EXPECT_EQ(Reason(spaced), "TOKEN_INVALID");
}

TEST_F(JwtTest, AudienceMayBeOneOfSeveralAndTheRoleIsThatOfUsers) {
  Json claims = Claims();
  claims["aud"] = {"other", "tensord"};
  claims.erase("role");
  const auto verified = Verify(Sign(ec_, kEs256, claims));
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(verified->role, "user");
}

TEST_F(JwtTest, ClaimsThatDoNotFitAreAllRefusedAlike) {
  const std::vector<Json> patches = {{{"iss", "https://other"}},
                                     {{"iss", nullptr}},
                                     {{"aud", "other"}},
                                     {{"aud", nullptr}},
                                     {{"aud", Json::array()}},
                                     {{"exp", "tomorrow"}},
                                     {{"nbf", kNow + 120}},
                                     {{"tenant", nullptr}},
                                     {{"tenant", "No Name"}},
                                     {{"role", "root"}},
                                     {{"role", 1}}};
  for (const Json& patch : patches) {
    Json claims = Claims();
    claims.merge_patch(patch);
    EXPECT_EQ(Reason(Sign(rsa_, kRs256, claims)), "TOKEN_INVALID") << patch;
  }
}

TEST_F(JwtTest, OneThatHasExpiredSaysSoIfItIsGoodOtherwise) {
  Json claims = Claims();
  claims["exp"] = kNow - 30;  // within what clocks differ
  EXPECT_TRUE(Verify(Sign(rsa_, kRs256, claims)).ok());
  claims["exp"] = kNow - 90;
  EXPECT_EQ(Reason(Sign(rsa_, kRs256, claims)), "TOKEN_EXPIRED");
  EXPECT_EQ(Reason(Sign(Rsa(2048), kRs256, claims)), "TOKEN_INVALID");
  claims.erase("exp");
  EXPECT_EQ(Reason(Sign(rsa_, kRs256, claims)), "TOKEN_EXPIRED");
}

TEST_F(JwtTest, SignaturesOfOtherKeysAndAlgorithmsAreRefused) {
  const std::string good = Sign(rsa_, kRs256, Claims());
  const std::string body = good.substr(0, good.rfind('.'));
  Json none = kRs256;
  none["alg"] = "none";
  Json hs256 = kRs256;
  hs256["alg"] = "HS256";
  Json critical = kRs256;
  critical["crit"] = {"b64"};
  Json unknown = kRs256;
  unknown["kid"] = "x";
  Json swapped = kEs256;
  swapped["kid"] = "r";
  std::string changed = good;
  changed[body.size() / 2] ^= 1;
  const std::string jwts[] = {
      body,
      body + ".",
      body + ".AAAA",
      good + ".x",
      good + "=",
      changed,
      "..",
      "",
      Sign(Rsa(2048), kRs256, Claims()),
      Sign(rsa_, none, Claims()),
      Sign(rsa_, hs256, Claims()),
      Sign(rsa_, critical, Claims()),
      Sign(rsa_, unknown, Claims()),
      Sign(rsa_, kEs256, Claims()),
      Sign(ec_, swapped, Claims()),
      Sign(ec_, kRs256, Claims()),
  };
  for (const std::string& jwt : jwts) {
    EXPECT_EQ(Reason(jwt), "TOKEN_INVALID") << jwt;
  }
}

TEST_F(JwtTest, KeySetsThatAreNoneSayWhatIsWanted) {
  Json short_key = RsaJwk(Rsa(1024), "r");
  Json no_point = EcJwk(ec_, "e");
  no_point["y"] = no_point["x"];
  Json other_use = RsaJwk(rsa_, "r");
  other_use["use"] = "enc";
  for (const std::string& text :
       {std::string("{"), std::string("[]"), std::string("{\"keys\": {}}"),
        std::string("{\"keys\": [1]}"), Jwks({}), Jwks({short_key}),
        Jwks({no_point}), Jwks({other_use})}) {
    const auto keys = JwtKeys::Parse("/etc/jwks.json", text);
    EXPECT_EQ(core::ReasonOf(keys.status()), "JWKS_MALFORMED") << text;
    EXPECT_EQ(keys.status().message().substr(0, 15), "/etc/jwks.json:") << text;
  }
}

TEST_F(JwtTest, AKeyThatIsTakenOutTakesWhatItProvedWithIt) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "jwks-", getpid());
  const auto write = [&path](const std::vector<Json>& keys) {
    std::ofstream(path) << Jwks(keys);
  };
  write({RsaJwk(rsa_, "r"), EcJwk(ec_, "e")});
  const auto authenticator = Authenticator::Create(
      {.jwt_keys = path,
       .jwt_rules = {.issuer = "https://issuer", .audience = "tensord"}});
  ASSERT_TRUE(authenticator.ok()) << authenticator.status();
  Json claims = Claims();
  claims["exp"] = absl::ToUnixSeconds(absl::Now()) + 600;
  const auto identify = [&](const std::string& jwt) {
    return (*authenticator)->Identify({.peer = "p", .bearer = jwt});
  };
  const std::string by_rsa = Sign(rsa_, kRs256, claims);
  const auto rsa = identify(by_rsa);
  const auto ec = identify(Sign(ec_, kEs256, claims));
  ASSERT_TRUE(rsa.ok() && ec.ok()) << rsa.status() << ec.status();

  write({EcJwk(ec_, "of another name")});
  EXPECT_TRUE((*authenticator)->Reload().ok());
  EXPECT_FALSE((*rsa)->IsValid());
  EXPECT_TRUE((*ec)->IsValid());
  EXPECT_EQ(core::ReasonOf(identify(by_rsa).status()), "TOKEN_INVALID");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tensord::server
