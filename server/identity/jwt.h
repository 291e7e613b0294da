// JSON Web Tokens, signed by keys of a JWKS file. (RFC 7519, 7517, 7518.)
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

struct evp_pkey_st;

namespace tensord::server {

/// What a JWT must say.
struct JwtRules {
  std::string issuer;    // `iss`
  std::string audience;  // `aud`, or one of it
};

/// What one says.
struct JwtClaims {
  std::string tenant;
  std::string role;                  // "user" unless it says so
  std::string subject;               // `sub`; may be ""
  absl::Time expires;                // `exp`
  std::shared_ptr<evp_pkey_st> key;  // that has signed it
};

/// Threads  safe for concurrent use.
class JwtKeys {
 public:
  /// Reads a JWKS text: RSA keys for RS256, of 2048 bits or more, and P-256
  /// keys for ES256. Keys for other uses are left out.
  ///
  /// Errors  INVALID_ARGUMENT, reason JWKS_MALFORMED: path, where, wanted.
  static absl::StatusOr<JwtKeys> Parse(const std::string& path,
                                       absl::string_view text);

  /// The claims of a JWT that one of the keys has signed, that follows `rules`
  /// and holds at `now`, a minute more or less.
  ///
  /// Errors  UNAUTHENTICATED, reason TOKEN_EXPIRED, for one that is good
  ///         otherwise, or TOKEN_INVALID.
  absl::StatusOr<JwtClaims> Verify(absl::string_view jwt, const JwtRules& rules,
                                   absl::Time now) const;

  /// Whether `key` is one of these, be it of another text.
  bool Has(const evp_pkey_st& key) const;

 private:
  struct Key {
    std::string algorithm;  // "RS256" or "ES256"
    std::shared_ptr<evp_pkey_st> key;
  };

  std::multimap<std::string, Key> keys_;  // by `kid`, which may be ""
};

/// What all that is wrong with a token, or a JWT, says of it.
absl::Status TokenInvalid();
absl::Status TokenExpired();

}  // namespace tensord::server
