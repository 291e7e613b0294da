#include "server/identity/token_file.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

constexpr absl::string_view kPrefix = "tensord_";
constexpr absl::string_view kNever = "never";
constexpr size_t kIdDigits = 8;
constexpr size_t kSaltBytes = 16;
constexpr size_t kSecretBytes = 32;
constexpr size_t kHashDigits = 64;
constexpr size_t kMaxTenantLength = 63;

bool IsHex(absl::string_view text, size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

absl::StatusOr<std::string> RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()),
                 static_cast<int>(count)) != 1) {
    return core::Internal("NO_RANDOMNESS", "RAND_bytes() failed");
  }
  return bytes;
}

/// What is wrong with a line; "": nothing.
std::string ParseLine(absl::string_view line, Token& token) {
  const std::vector<std::string> parts =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (parts.size() != 6) {
    return absl::StrCat(parts.size(),
                        " words, wanted id, tenant, role, expiry, salt, hash");
  }
  token = {.id = parts[0],
           .tenant = parts[1],
           .role = parts[2],
           .expires = absl::InfiniteFuture(),
           .salt = parts[4],
           .hash = parts[5]};
  if (!IsHex(token.id, kIdDigits)) return "the id is not 8 digits of 0-9a-f";
  if (!IsTenantName(token.tenant)) {
    return absl::StrCat("'", token.tenant, "' is no name of a tenant");
  }
  if (token.role != "user" && token.role != "operator") {
    return absl::StrCat("role '", token.role, "', wanted user or operator");
  }
  std::string problem;
  if (parts[3] != kNever && !absl::ParseTime(absl::RFC3339_full, parts[3],
                                             &token.expires, &problem)) {
    return absl::StrCat("expiry '", parts[3],
                        "', wanted e.g. 2027-02-22T10:00:00Z or ", kNever);
  }
  if (parts[3] != kNever) {  // no file that is written has parts of a second
    token.expires = absl::FromUnixSeconds(absl::ToUnixSeconds(token.expires));
  }
  if (!IsHex(token.salt, 2 * kSaltBytes) || !IsHex(token.hash, kHashDigits)) {
    return "salt and hash are not 32 and 64 digits of 0-9a-f";
  }
  return "";
}

}  // namespace

std::string Sha256(absl::string_view first, absl::string_view second) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  EVP_MD_CTX* const context = EVP_MD_CTX_new();
  EVP_DigestInit_ex(context, EVP_sha256(), nullptr);
  EVP_DigestUpdate(context, first.data(), first.size());
  EVP_DigestUpdate(context, second.data(), second.size());
  EVP_DigestFinal_ex(context, digest.data(), &size);
  EVP_MD_CTX_free(context);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), size));
}

bool IsTenantName(absl::string_view tenant) {
  const auto is_plain = [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) ||
           absl::ascii_isdigit(static_cast<unsigned char>(c));
  };
  return !tenant.empty() && tenant.size() <= kMaxTenantLength &&
         is_plain(tenant[0]) &&
         std::all_of(tenant.begin(), tenant.end(), [&](char c) {
           return is_plain(c) || c == '-' || c == '_' || c == '.';
         });
}

absl::StatusOr<std::vector<Token>> ParseTokens(const std::string& path,
                                               absl::string_view text) {
  std::vector<Token> tokens;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view content = absl::StripAsciiWhitespace(line);
    if (content.empty() || content[0] == '#') continue;
    std::string problem = ParseLine(content, tokens.emplace_back());
    const auto same = std::find_if(
        tokens.begin(), tokens.end() - 1,
        [&](const Token& token) { return token.id == tokens.back().id; });
    if (problem.empty() && same != tokens.end() - 1) {
      problem = absl::StrCat("a second token ", same->id);
    }
    if (!problem.empty()) {
      return core::InvalidArgument("TOKEN_FILE_MALFORMED", path, ":", number,
                                   ": ", problem);
    }
  }
  return tokens;
}

absl::StatusOr<NewToken> MakeToken(std::string tenant, std::string role,
                                   absl::Time expires) {
  TENSORD_ASSIGN_OR_RETURN(const std::string id, RandomBytes(kIdDigits / 2));
  TENSORD_ASSIGN_OR_RETURN(const std::string salt, RandomBytes(kSaltBytes));
  TENSORD_ASSIGN_OR_RETURN(const std::string random, RandomBytes(kSecretBytes));
  NewToken made;
  made.token = {.id = absl::BytesToHexString(id),
                .tenant = std::move(tenant),
                .role = std::move(role),
                .expires = expires,
                .salt = absl::BytesToHexString(salt),
                .hash = ""};
  made.secret = absl::StrCat(kPrefix, made.token.id, "_",
                             absl::WebSafeBase64Escape(random));
  made.token.hash = Sha256(made.token.salt, made.secret);
  return made;
}

std::string FormatToken(const Token& token) {
  const std::string expires =
      token.expires == absl::InfiniteFuture()
          ? std::string(kNever)
          : absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", token.expires,
                             absl::UTCTimeZone());
  return absl::StrCat(token.id, " ", token.tenant, " ", token.role, " ",
                      expires, " ", token.salt, " ", token.hash, "\n");
}

std::optional<absl::string_view> TokenIdOf(absl::string_view secret) {
  if (!absl::ConsumePrefix(&secret, kPrefix) ||
      secret.size() <= kIdDigits + 1 || secret[kIdDigits] != '_') {
    return std::nullopt;
  }
  return secret.substr(0, kIdDigits);
}

bool IsSecretOf(const Token& token, absl::string_view secret) {
  const std::string hash = Sha256(token.salt, secret);
  return hash.size() == token.hash.size() &&
         CRYPTO_memcmp(hash.data(), token.hash.data(), hash.size()) == 0;
}

}  // namespace tensord::server
