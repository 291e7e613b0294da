#include "server/identity/jwt.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"
#include "server/identity/openssl_owned.h"
#include "server/identity/token_file.h"

namespace tensord::server {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kClockSkew = absl::Minutes(1);
constexpr int kLeastRsaBits = 2048;
constexpr size_t kP256Bytes = 32;

using Number = std::unique_ptr<BIGNUM, Freed<BN_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Freed<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Freed<OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Freed<EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, Freed<ECDSA_SIG_free>>;

const unsigned char* BytesOf(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
Number NumberOf(const std::string& bytes) {
  return Number(
      BN_bin2bn(BytesOf(bytes), static_cast<int>(bytes.size()), nullptr));
}

/// Base64url without padding; none where it is none.
std::optional<std::string> Decode(absl::string_view text) {
  std::string bytes;
  // In one way only: what is signed may not be written in several.
  if (!absl::WebSafeBase64Unescape(text, &bytes) ||
      absl::WebSafeBase64Escape(bytes) != text) {
    return std::nullopt;
  }
  return bytes;
}

/// A text member; "" where there is none.
std::string Text(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}
std::optional<std::string> Bytes(const Json& object, const char* name) {
  const std::string text = Text(object, name);
  return text.empty() ? std::nullopt : Decode(text);
}

std::shared_ptr<EVP_PKEY> MakeKey(const char* type, OSSL_PARAM_BLD* builder) {
  const Params params(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (params == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY,
                        params.get()) != 1) {
    ERR_clear_error();
    return nullptr;
  }
  return {key, EVP_PKEY_free};
}

/// Null where the members are none.
std::shared_ptr<EVP_PKEY> RsaKey(const Json& jwk) {
  const auto n = Bytes(jwk, "n"), e = Bytes(jwk, "e");
  if (!n || !e) return nullptr;
  const Number modulus = NumberOf(*n), exponent = NumberOf(*e);
  const Builder builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get());
  OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get());
  std::shared_ptr<EVP_PKEY> key = MakeKey("RSA", builder.get());
  return key != nullptr && EVP_PKEY_get_bits(key.get()) >= kLeastRsaBits
             ? key
             : nullptr;
}
std::shared_ptr<EVP_PKEY> EcKey(const Json& jwk) {
  const auto x = Bytes(jwk, "x"), y = Bytes(jwk, "y");
  if (!x || !y || x->size() != kP256Bytes || y->size() != kP256Bytes) {
    return nullptr;
  }
  const std::string point = absl::StrCat("\x04", *x, *y);
  const Builder builder(OSSL_PARAM_BLD_new());
  OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME,
                                  "P-256", 0);
  OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY,
                                   point.data(), point.size());
  return MakeKey("EC", builder.get());
}

/// r and s one after the other, as JWTs have them, in the form that OpenSSL
/// wants; "": they are not there.
std::string DerOf(const std::string& raw) {
  if (raw.size() != 2 * kP256Bytes) return "";
  const Signature signature(ECDSA_SIG_new());
  ECDSA_SIG_set0(signature.get(), NumberOf(raw.substr(0, kP256Bytes)).release(),
                 NumberOf(raw.substr(kP256Bytes)).release());
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &der);
  std::string result(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return result;
}

bool IsSigned(absl::string_view text, const std::string& signature,
              EVP_PKEY* key) {
  const DigestContext context(EVP_MD_CTX_new());
  const bool is_signed =
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr,
                           key) == 1 &&
      EVP_DigestVerify(context.get(), BytesOf(signature), signature.size(),
                       reinterpret_cast<const unsigned char*>(text.data()),
                       text.size()) == 1;
  ERR_clear_error();
  return is_signed;
}

/// Seconds since 1970; none: the claim is there, and is no number.
std::optional<absl::Time> TimeIn(const Json& claims, const char* name,
                                 absl::Time otherwise) {
  const auto at = claims.find(name);
  if (at == claims.end()) return otherwise;
  if (!at->is_number()) return std::nullopt;
  return absl::UnixEpoch() + absl::Seconds(at->get<double>());
}

bool HasAudience(const Json& claims, const std::string& audience) {
  const auto at = claims.find("aud");
  if (at == claims.end()) return false;
  if (!at->is_array()) return *at == audience;
  for (const Json& each : *at) {
    if (each == audience) return true;
  }
  return false;
}

}  // namespace

absl::Status TokenInvalid() {
  return core::Error(absl::StatusCode::kUnauthenticated, "TOKEN_INVALID",
                     "the token is not one that this server takes");
}

absl::Status TokenExpired() {
  return core::Error(absl::StatusCode::kUnauthenticated, "TOKEN_EXPIRED",
                     "the token has expired; get a new one");
}

absl::StatusOr<JwtKeys> JwtKeys::Parse(const std::string& path,
                                       absl::string_view text) {
  const auto malformed = [&path](const auto&... parts) {
    return core::InvalidArgument("JWKS_MALFORMED", path, ": ", parts...);
  };
  const Json jwks = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!jwks.is_object() || !jwks.contains("keys") || !jwks["keys"].is_array()) {
    return malformed("no JSON Web Key Set, wanted {\"keys\": [...]}");
  }
  JwtKeys keys;
  int number = 0;
  for (const Json& jwk : jwks["keys"]) {
    ++number;
    if (!jwk.is_object()) return malformed("key ", number, " is no object");
    const std::string type = Text(jwk, "kty"), use = Text(jwk, "use");
    const std::string algorithm = type == "RSA"  ? "RS256"
                                  : type == "EC" ? "ES256"
                                                 : "";
    const std::string said = Text(jwk, "alg");
    if (algorithm.empty() || (!use.empty() && use != "sig") ||
        (!said.empty() && said != algorithm) ||
        (type == "EC" && Text(jwk, "crv") != "P-256")) {
      continue;
    }
    std::shared_ptr<EVP_PKEY> key = type == "RSA" ? RsaKey(jwk) : EcKey(jwk);
    if (key == nullptr) {
      return malformed(
          "key ", number,
          type == "RSA" ? " has no n and e in base64url, of 2048 bits or more"
                        : " has no x and y in base64url, on P-256");
    }
    keys.keys_.insert({Text(jwk, "kid"), {algorithm, std::move(key)}});
  }
  if (keys.keys_.empty()) return malformed("no key for RS256 or ES256");
  return keys;
}

absl::StatusOr<JwtClaims> JwtKeys::Verify(absl::string_view jwt,
                                          const JwtRules& rules,
                                          absl::Time now) const {
  const std::vector<absl::string_view> parts = absl::StrSplit(jwt, '.');
  if (parts.size() != 3) return TokenInvalid();
  const auto head = Decode(parts[0]), body = Decode(parts[1]);
  auto signature = Decode(parts[2]);
  if (!head || !body || !signature) return TokenInvalid();
  const Json header = Json::parse(*head, nullptr, false);
  if (!header.is_object() || header.contains("crit")) return TokenInvalid();
  const std::string algorithm = Text(header, "alg");
  if (algorithm == "ES256") signature = DerOf(*signature);

  const absl::string_view text =
      jwt.substr(0, parts[0].size() + 1 + parts[1].size());
  const auto [first, last] = keys_.equal_range(Text(header, "kid"));
  // The key says how it signs; a JWT that says otherwise is none of it.
  const auto signer = std::find_if(first, last, [&](const auto& entry) {
    return entry.second.algorithm == algorithm &&
           IsSigned(text, *signature, entry.second.key.get());
  });
  if (signer == last) return TokenInvalid();

  const Json claims = Json::parse(*body, nullptr, false);
  if (!claims.is_object() || Text(claims, "iss") != rules.issuer ||
      !HasAudience(claims, rules.audience)) {
    return TokenInvalid();
  }
  const auto expires = TimeIn(claims, "exp", absl::InfinitePast());
  const auto begins = TimeIn(claims, "nbf", absl::InfinitePast());
  if (!expires || !begins || now + kClockSkew < *begins) return TokenInvalid();
  JwtClaims result{
      .tenant = Text(claims, "tenant"),
      .role = claims.contains("role") ? Text(claims, "role") : "user",
      .subject = Text(claims, "sub"),
      .expires = *expires + kClockSkew,
      .key = signer->second.key};
  if (!IsTenantName(result.tenant) ||
      (result.role != "user" && result.role != "operator")) {
    return TokenInvalid();
  }
  if (now >= result.expires) return TokenExpired();
  return result;
}

bool JwtKeys::Has(const EVP_PKEY& key) const {
  return std::any_of(keys_.begin(), keys_.end(), [&key](const auto& entry) {
    return EVP_PKEY_eq(entry.second.key.get(), &key) == 1;
  });
}

}  // namespace tensord::server
