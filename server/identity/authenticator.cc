#include "server/identity/authenticator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status.h"
#include "server/identity/file_watch.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxProved = 16'384;
constexpr size_t kMaxPeers = 4'096;

// A peer may be wrong so often; then it waits, twice as long each time.
constexpr int64_t kFreeGuesses = 10;
constexpr absl::Duration kFirstWait = absl::Milliseconds(100);
constexpr absl::Duration kLongestWait = absl::Minutes(1);

template <typename... Parts>
absl::Status Unauthenticated(absl::string_view reason, const Parts&... parts) {
  return core::Error(absl::StatusCode::kUnauthenticated, reason,
                     absl::StrCat(parts...));
}

Role RoleOf(absl::string_view name) {
  return name == "operator" ? Role::kOperator : Role::kUser;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Authenticator>> Authenticator::Create(
    Options options) {
  std::unique_ptr<Authenticator> made(new Authenticator(std::move(options)));
  TENSORD_RETURN_IF_ERROR(made->Reload());
  return made;
}

absl::Status Authenticator::Reload() {
  const absl::Status tokens = ReloadTokens();
  const absl::Status keys = ReloadKeys();
  return tokens.ok() ? keys : tokens;
}

absl::Status Authenticator::ReloadTokens() {
  if (options_.tokens.empty()) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(const std::string text, ReadFile(options_.tokens));
  TENSORD_ASSIGN_OR_RETURN(std::vector<Token> list,
                           ParseTokens(options_.tokens, text));
  std::map<std::string, Token, std::less<>> tokens;
  for (Token& token : list) {
    std::string id = token.id;
    tokens.emplace(std::move(id), std::move(token));
  }
  absl::MutexLock lock(&mutex_);
  tokens_ = std::move(tokens);
  Reprove([this](const Proved& proved) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!proved.token) return true;
    const auto now = tokens_.find(proved.token->id);
    return now != tokens_.end() && now->second == *proved.token;
  });
  return absl::OkStatus();
}

absl::Status Authenticator::ReloadKeys() {
  if (options_.jwt_keys.empty()) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(const std::string text, ReadFile(options_.jwt_keys));
  TENSORD_ASSIGN_OR_RETURN(JwtKeys keys,
                           JwtKeys::Parse(options_.jwt_keys, text));
  absl::MutexLock lock(&mutex_);
  jwt_keys_ = std::move(keys);
  Reprove([this](const Proved& proved) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return proved.key == nullptr || jwt_keys_->Has(*proved.key);
  });
  return absl::OkStatus();
}

template <typename IsGood>
void Authenticator::Reprove(IsGood is_good) {
  absl::erase_if(proved_, [&is_good](const auto& entry) {
    if (is_good(entry.second)) return false;
    entry.second.identity->Revoke();
    return true;
  });
}

void Authenticator::SetTenants(const Tenants& tenants) {
  absl::MutexLock lock(&mutex_);
  std::map<std::string, Shared, std::less<>> known;
  const auto add = [&](const std::string& certificate,
                       const std::string& tenant, Role role) {
    Shared& identity = known[certificate];
    if (certificates_) {
      const auto before = certificates_->find(certificate);
      if (before != certificates_->end() &&
          before->second->tenant() == tenant &&
          before->second->role() == role) {
        identity = before->second;
        return;
      }
    }
    identity = std::make_shared<const Identity>(
        tenant, role, absl::StrCat("certificate ", certificate));
  };
  for (const auto& [name, shares] : tenants) {
    for (const std::string& each : shares.certificates) {
      add(each, name, Role::kUser);
    }
    for (const std::string& each : shares.operators) {
      add(each, name, Role::kOperator);
    }
  }
  if (certificates_) {
    for (const auto& [certificate, identity] : *certificates_) {
      const auto now = known.find(certificate);
      if (now == known.end() || now->second != identity) identity->Revoke();
    }
  }
  certificates_ = std::move(known);
}

std::vector<std::string> Authenticator::paths() const {
  std::vector<std::string> paths;
  if (!options_.tokens.empty()) paths.push_back(options_.tokens);
  if (!options_.jwt_keys.empty()) paths.push_back(options_.jwt_keys);
  return paths;
}

absl::StatusOr<Authenticator::Shared> Authenticator::Identify(
    const Credentials& credentials) {
  if (!asks()) return anybody_;
  const bool has_certificate =
      options_.takes_certificates && !credentials.certificate.empty();
  const bool has_bearer = asks_for_bearer() && !credentials.bearer.empty();
  if (!has_certificate && !has_bearer) {
    return Unauthenticated(
        "CREDENTIALS_MISSING", "the call says not who asks, wanted ",
        options_.takes_certificates ? "a certificate" : "",
        options_.takes_certificates && asks_for_bearer() ? " or " : "",
        asks_for_bearer() ? "a token, as authorization: Bearer TOKEN" : "");
  }
  absl::MutexLock lock(&mutex_);
  Shared certified;
  if (has_certificate) {
    TENSORD_ASSIGN_OR_RETURN(certified, OfCertificate(credentials.certificate));
    if (!has_bearer) return certified;
  }
  TENSORD_ASSIGN_OR_RETURN(const Shared borne,
                           OfBearer(credentials.peer, credentials.bearer));
  if (certified != nullptr && certified->tenant() != borne->tenant()) {
    return Unauthenticated("IDENTITIES_DIFFER",
                           "certificate and token are of different tenants");
  }
  return borne;
}

absl::StatusOr<Authenticator::Shared> Authenticator::OfCertificate(
    const std::vector<absl::string_view>& names) {
  if (!certificates_) {
    return std::make_shared<const Identity>(
        anybody_->tenant(), anybody_->role(),
        absl::StrCat("certificate ", names.front()));
  }
  Shared found;
  for (const absl::string_view name : names) {
    const auto known = certificates_->find(name);
    if (known == certificates_->end()) continue;
    if (found != nullptr && found->tenant() != known->second->tenant()) {
      return Unauthenticated(
          "IDENTITIES_DIFFER",
          "the certificate's names are of different tenants");
    }
    if (found == nullptr) found = known->second;
  }
  if (found != nullptr) return found;
  return Unauthenticated("CERTIFICATE_UNKNOWN",
                         "the certificate is of no tenant of this server");
}

absl::StatusOr<Authenticator::Shared> Authenticator::OfBearer(
    absl::string_view peer, absl::string_view bearer) {
  std::string digest = Sha256(bearer);
  const auto known = proved_.find(digest);
  if (known != proved_.end()) {
    if (known->second.identity->IsValid()) return known->second.identity;
    proved_.erase(known);
  }
  // A token of the file takes one hash to look at, so that a good one passes
  // also where others of its address, as that of all Unix sockets, guess.
  const absl::Status may_guess = CheckGuesses(peer);
  if (!may_guess.ok() && !TokenIdOf(bearer)) return may_guess;
  absl::StatusOr<Proved> verified = Verify(bearer);
  if (!verified.ok()) {
    if (!may_guess.ok()) return may_guess;
    if (core::ReasonOf(verified.status()) != "TOKEN_EXPIRED") CountGuess(peer);
    return verified.status();
  }
  Shared identity = verified->identity;
  if (proved_.size() >= kMaxProved) {
    absl::erase_if(proved_, [](const auto& proved) {
      return !proved.second.identity->IsValid();
    });
  }
  // More than that many at a time are proved in each call.
  if (proved_.size() < kMaxProved) {
    proved_.emplace(std::move(digest), *std::move(verified));
  }
  return identity;
}

absl::StatusOr<Authenticator::Proved> Authenticator::Verify(
    absl::string_view bearer) {
  if (const auto id = TokenIdOf(bearer)) {
    const auto found = tokens_.find(*id);
    // One that is not known takes as long.
    static const Token* const nobody = new Token{.hash = std::string(64, '0')};
    const Token& token = found == tokens_.end() ? *nobody : found->second;
    if (!IsSecretOf(token, bearer)) return TokenInvalid();
    if (absl::Now() >= token.expires) return TokenExpired();
    return Proved{std::make_shared<const Identity>(
                      token.tenant, RoleOf(token.role),
                      absl::StrCat("token ", token.id), token.expires),
                  token, nullptr};
  }
  if (!jwt_keys_) return TokenInvalid();
  TENSORD_ASSIGN_OR_RETURN(
      const JwtClaims claims,
      jwt_keys_->Verify(bearer, options_.jwt_rules, absl::Now()));
  return Proved{std::make_shared<const Identity>(
                    claims.tenant, RoleOf(claims.role),
                    absl::StrCat("jwt ", claims.subject), claims.expires),
                std::nullopt, claims.key};
}

absl::Status Authenticator::CheckGuesses(absl::string_view peer) {
  auto known = guesses_.find(peer);
  if (known == guesses_.end()) known = guesses_.find("");
  if (known == guesses_.end()) return absl::OkStatus();
  const absl::Duration left = known->second.until - absl::Now();
  if (left <= absl::ZeroDuration()) return absl::OkStatus();
  return Unauthenticated("TOO_MANY_GUESSES", "after ", known->second.count,
                         " bad tokens no other of this peer is looked at for ",
                         absl::FormatDuration(left));
}

void Authenticator::CountGuess(absl::string_view peer) {
  const absl::Time now = absl::Now();
  if (guesses_.size() >= kMaxPeers) {
    std::erase_if(guesses_, [now](const auto& guess) {
      return guess.second.until + kLongestWait < now;
    });
  }
  // Where that many guess, all new ones share one account.
  const bool is_full = guesses_.size() >= kMaxPeers;
  Guesses& guesses = guesses_[is_full ? "" : std::string(peer)];
  if (guesses.until + kLongestWait < now) guesses.count = 0;
  ++guesses.count;
  const int64_t over = guesses.count - kFreeGuesses;
  guesses.until = now;
  if (over > 0) {
    guesses.until += std::min(
        kLongestWait,
        kFirstWait *
            static_cast<double>(int64_t{1} << std::min<int64_t>(over, 20)));
  }
}

}  // namespace tensord::server
