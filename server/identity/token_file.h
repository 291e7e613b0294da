// Bearer tokens, kept as salted hashes in a file.
//
// A line is a token: id, tenant, role, when it expires, salt, hash, with spaces
// between them; lines that begin with # are comments.
//
//   1a2b3c4d chemistry user 2027-02-22T10:00:00Z 0f3c...(32 digits) 9b71...(64)
//
// The secret is `tensord_{id}_{43 characters}`: 256 random bits, so that one
// SHA-256 with a salt says nothing about it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tensord::server {

/// What is known of a token without its secret.
struct Token {
  std::string id;
  std::string tenant;
  std::string role;  // "user" or "operator"
  absl::Time expires = absl::InfiniteFuture();
  std::string salt;  // hexadecimal, as the hash
  std::string hash;

  bool operator==(const Token&) const = default;
};

/// The SHA-256 of the texts one after the other, hexadecimal.
std::string Sha256(absl::string_view first, absl::string_view second = "");

/// Whether `tenant` may be the name of one: 1 to 63 characters a-z, 0-9, '-',
/// '_', '.', the first a letter or digit.
bool IsTenantName(absl::string_view tenant);

/// The tokens of a file's text. `path` is for messages.
/// Errors  INVALID_ARGUMENT, reason TOKEN_FILE_MALFORMED: path, line, wanted.
absl::StatusOr<std::vector<Token>> ParseTokens(const std::string& path,
                                               absl::string_view text);

/// A token with a new secret.
struct NewToken {
  Token token;
  std::string secret;
};
absl::StatusOr<NewToken> MakeToken(std::string tenant, std::string role,
                                   absl::Time expires);

/// Its line, with the end of line.
std::string FormatToken(const Token& token);

/// The id in a secret; none: it is not formed as one.
std::optional<absl::string_view> TokenIdOf(absl::string_view secret);

/// Whether `secret` is that of `token`, in a time that does not depend on it.
bool IsSecretOf(const Token& token, absl::string_view secret);

}  // namespace tensord::server
