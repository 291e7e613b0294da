#include "server/identity/authenticator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "server/identity/file_watch.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxProved = 16'384;
constexpr size_t kMaxPeers = 4'096;
constexpr absl::Duration kSweepInterval = absl::Seconds(1);

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

/// What `known` has of `key`, if it is still so, or a new one.
template <typename Map, typename Key>
std::shared_ptr<const Identity> SameOrNew(const Map& known, const Key& key,
                                          const std::string& tenant, Role role,
                                          absl::string_view kind) {
  const auto before = known.find(key);
  if (before != known.end() && before->second->tenant() == tenant &&
      before->second->role() == role) {
    return before->second;
  }
  return std::make_shared<const Identity>(tenant, role,
                                          absl::StrCat(kind, " ", key));
}

/// Revokes those of `before` that are not in `now`.
template <typename Map>
void RevokeOthers(const Map& before, const Map& now) {
  for (const auto& [key, identity] : before) {
    const auto found = now.find(key);
    if (found == now.end() || found->second != identity) identity->Revoke();
  }
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
  absl::MutexLock lock(&mutex_);
  Proofs proofs{.tokens = {}, .jwt_keys = proofs_->jwt_keys};
  for (Token& token : list) {
    std::string id = token.id;
    proofs.tokens.emplace(std::move(id), std::move(token));
  }
  SetProofs(std::move(proofs));
  return absl::OkStatus();
}

absl::Status Authenticator::ReloadKeys() {
  if (options_.jwt_keys.empty()) return absl::OkStatus();
  TENSORD_ASSIGN_OR_RETURN(const std::string text, ReadFile(options_.jwt_keys));
  TENSORD_ASSIGN_OR_RETURN(JwtKeys keys,
                           JwtKeys::Parse(options_.jwt_keys, text));
  absl::MutexLock lock(&mutex_);
  SetProofs({.tokens = proofs_->tokens, .jwt_keys = std::move(keys)});
  return absl::OkStatus();
}

void Authenticator::SetProofs(Proofs proofs) {
  proofs_ = std::make_shared<const Proofs>(std::move(proofs));
  absl::erase_if(proved_,
                 [&](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                   const bool holds = entry.second.HoldsWith(*proofs_);
                   if (!holds) entry.second.identity->Revoke();
                   return !holds;
                 });
  std::erase_if(unremembered_,
                [&](const Unremembered& entry)
                    ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                      const Shared identity = entry.identity.lock();
                      const bool holds = entry.proved.HoldsWith(*proofs_);
                      if (identity != nullptr && !holds) identity->Revoke();
                      return identity == nullptr || !holds;
                    });
}

bool Authenticator::Proved::HoldsWith(const Proofs& proofs) const {
  if (!token) return proofs.jwt_keys && proofs.jwt_keys->Has(*key);
  const auto now = proofs.tokens.find(token->id);
  return now != proofs.tokens.end() && now->second == *token;
}

void Authenticator::SetTenants(const TenantsFile& file) {
  absl::MutexLock lock(&mutex_);
  ByName certificates;
  ByUser users;
  const ByName none;
  const ByName& known = certificates_ ? *certificates_ : none;
  for (const auto& [name, shares] : file.tenants) {
    for (const Role role : {Role::kUser, Role::kOperator}) {
      const bool is_user = role == Role::kUser;
      for (const std::string& each :
           is_user ? shares.certificates : shares.operators) {
        certificates[each] = SameOrNew(known, each, name, role, "certificate");
      }
      for (const uid_t each : is_user ? shares.users : shares.operator_users) {
        users[each] = SameOrNew(users_, each, name, role, "user");
      }
    }
  }
  std::vector<std::string> operators = file.operators.certificates;
  operators.insert(operators.end(), options_.operators.begin(),
                   options_.operators.end());
  for (const std::string& each : operators) {
    // Of the tenant that the file says.
    const auto found = certificates.find(each);
    const std::string tenant = found == certificates.end()
                                   ? anybody_->tenant()
                                   : found->second->tenant();
    certificates[each] =
        SameOrNew(known, each, tenant, Role::kOperator, "certificate");
  }
  for (const uid_t each : file.operators.users) {
    users[each] =
        SameOrNew(users_, each, anybody_->tenant(), Role::kOperator, "user");
  }
  RevokeOthers(known, certificates);
  RevokeOthers(users_, users);
  certificates_ = std::move(certificates);
  users_ = std::move(users);
}

std::vector<std::string> Authenticator::paths() const {
  std::vector<std::string> paths;
  if (!options_.tokens.empty()) paths.push_back(options_.tokens);
  if (!options_.jwt_keys.empty()) paths.push_back(options_.jwt_keys);
  return paths;
}

std::vector<std::string> Authenticator::operators() {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> names;
  const auto add = [&names](const auto& identities) {
    for (const auto& [key, identity] : identities) {
      if (identity->role() == Role::kOperator)
        names.push_back(identity->name());
    }
  };
  if (certificates_) {
    add(*certificates_);
  } else {
    for (const std::string& name : options_.operators) {
      names.push_back(absl::StrCat("certificate ", name));
    }
  }
  add(users_);
  std::ranges::sort(names);
  return names;
}

bool Authenticator::all_certificates_are_operators() {
  absl::MutexLock lock(&mutex_);
  return options_.takes_certificates && !certificates_ &&
         options_.operators.empty() && !options_.serves_others;
}

bool Authenticator::Knows(uid_t user) {
  absl::MutexLock lock(&mutex_);
  return users_.contains(user);
}

absl::StatusOr<Authenticator::Shared> Authenticator::Identify(
    const Credentials& credentials) {
  if (!asks()) return anybody_;
  const bool has_certificate =
      options_.takes_certificates && !credentials.certificate.empty();
  const bool has_bearer = asks_for_bearer() && !credentials.bearer.empty();
  const bool has_user = options_.takes_users && credentials.user.has_value();
  if (!has_certificate && !has_bearer && !has_user) return Missing();
  Shared known;  // without a token
  if (has_certificate) {
    TENSORD_ASSIGN_OR_RETURN(known, OfCertificate(credentials.certificate));
  } else if (has_user) {
    absl::MutexLock lock(&mutex_);
    const auto found = users_.find(*credentials.user);
    if (found != users_.end()) known = found->second;
  }
  if (!has_bearer) {
    if (known != nullptr) return known;
    return Unauthenticated(
        "USER_UNKNOWN",
        "the user of this machine is of no tenant of this server");
  }
  TENSORD_ASSIGN_OR_RETURN(const Shared borne,
                           OfBearer(credentials.peer, credentials.bearer));
  if (known != nullptr && known->tenant() != borne->tenant()) {
    return Unauthenticated("IDENTITIES_DIFFER",
                           has_certificate ? "certificate" : "user",
                           " and token are of different tenants");
  }
  return known == nullptr ? borne
                          : std::make_shared<const Identity>(borne, known);
}

absl::Status Authenticator::Missing() const {
  std::vector<absl::string_view> wanted;
  if (options_.takes_certificates) wanted.push_back("a certificate");
  if (asks_for_bearer()) {
    wanted.push_back("a token, as authorization: Bearer TOKEN");
  }
  if (takes_users()) wanted.push_back("a user of this machine, by unix:PATH");
  return Unauthenticated("CREDENTIALS_MISSING",
                         "the call says not who asks, wanted ",
                         absl::StrJoin(wanted, " or "));
}

Authenticator::Shared Authenticator::OfSigned(
    const std::vector<absl::string_view>& names) const {
  const std::vector<std::string>& operators = options_.operators;
  const auto named = std::ranges::find_if(names, [&](absl::string_view name) {
    return std::ranges::find(operators, name) != operators.end();
  });
  const bool is_operator =
      operators.empty() ? !options_.serves_others : named != names.end();
  return std::make_shared<const Identity>(
      anybody_->tenant(), is_operator ? Role::kOperator : Role::kUser,
      absl::StrCat("certificate ",
                   named == names.end() ? names.front() : *named));
}

absl::StatusOr<Authenticator::Shared> Authenticator::OfCertificate(
    const std::vector<absl::string_view>& names) {
  absl::MutexLock lock(&mutex_);
  if (!certificates_) return OfSigned(names);
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
  const std::string digest = Sha256(bearer);
  std::shared_ptr<const Proofs> proofs;
  absl::Status may_guess;
  {
    absl::MutexLock lock(&mutex_);
    if (const Shared known = FindProved(digest)) return known;
    proofs = proofs_;
    may_guess = CheckGuesses(peer);
  }
  // A token of the file takes one hash to look at, so that a good one passes
  // also where others of its address, as that of all Unix sockets, guess.
  if (!may_guess.ok() && !TokenIdOf(bearer)) return may_guess;
  absl::StatusOr<Proved> verified = Verify(*proofs, bearer);  // may take long
  absl::MutexLock lock(&mutex_);
  if (!verified.ok()) {
    if (!may_guess.ok()) return may_guess;
    if (core::ReasonOf(verified.status()) != "TOKEN_EXPIRED") CountGuess(peer);
    return verified.status();
  }
  if (!verified->HoldsWith(*proofs_)) return TokenInvalid();  // from now on
  return Remember(digest, *std::move(verified));
}

Authenticator::Shared Authenticator::FindProved(absl::string_view digest) {
  const auto known = proved_.find(digest);
  if (known == proved_.end()) return nullptr;
  if (known->second.identity->IsValid()) return known->second.identity;
  proved_.erase(known);
  return nullptr;
}

Authenticator::Shared Authenticator::Remember(absl::string_view digest,
                                              Proved proved) {
  // Another call may have proved it meanwhile.
  if (Shared known = FindProved(digest)) return known;
  const absl::Time now = options_.now();
  if (proved_.size() >= kMaxProved && now - swept_ >= kSweepInterval) {
    swept_ = now;
    absl::erase_if(proved_, [](const auto& entry) {
      return !entry.second.identity->IsValid();
    });
  }
  Shared identity = proved.identity;
  // More than that many at a time are proved in each call.
  if (proved_.size() < kMaxProved) {
    proved_.emplace(std::string(digest), std::move(proved));
    return identity;
  }
  if (unremembered_.size() == unremembered_.capacity()) {
    std::erase_if(unremembered_, [](const Unremembered& entry) {
      return entry.identity.expired();
    });
  }
  proved.identity = nullptr;
  unremembered_.push_back({identity, std::move(proved)});
  return identity;
}

absl::StatusOr<Authenticator::Proved> Authenticator::Verify(
    const Proofs& proofs, absl::string_view bearer) const {
  if (const auto id = TokenIdOf(bearer)) {
    const auto found = proofs.tokens.find(*id);
    // One that is not known takes as long.
    static const Token* const nobody = new Token{.hash = std::string(64, '0')};
    const Token& token = found == proofs.tokens.end() ? *nobody : found->second;
    if (!IsSecretOf(token, bearer)) return TokenInvalid();
    if (options_.now() >= token.expires) return TokenExpired();
    return Proved{std::make_shared<const Identity>(
                      token.tenant, RoleOf(token.role),
                      absl::StrCat("token ", token.id), token.expires),
                  token, nullptr};
  }
  if (!proofs.jwt_keys) return TokenInvalid();
  TENSORD_ASSIGN_OR_RETURN(
      const JwtClaims claims,
      proofs.jwt_keys->Verify(bearer, options_.jwt_rules, options_.now()));
  return Proved{std::make_shared<const Identity>(
                    claims.tenant, RoleOf(claims.role),
                    absl::StrCat("jwt ", claims.subject), claims.expires),
                std::nullopt, claims.key};
}

absl::Status Authenticator::CheckGuesses(absl::string_view peer) {
  const auto known = guesses_.find(peer);
  if (known == guesses_.end()) return absl::OkStatus();
  const absl::Duration left = known->second.until - options_.now();
  if (left <= absl::ZeroDuration()) return absl::OkStatus();
  return Unauthenticated("TOO_MANY_GUESSES", "after ", known->second.count,
                         " bad tokens no other of this peer is looked at for ",
                         absl::FormatDuration(left));
}

void Authenticator::CountGuess(absl::string_view peer) {
  const absl::Time now = options_.now();
  if (guesses_.size() >= kMaxPeers && !guesses_.contains(peer)) ForgetGuesses();
  Guesses& guesses = guesses_[std::string(peer)];
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

void Authenticator::ForgetGuesses() {
  const absl::Time now = options_.now();
  std::erase_if(guesses_, [now](const auto& guess) {
    return guess.second.until + kLongestWait < now;
  });
  if (guesses_.size() < kMaxPeers) return;
  // Those who were wrong least often, and longest ago, so that who guesses on
  // waits whoever else does. Several, as looking at all takes long.
  std::vector<std::map<std::string, Guesses>::const_iterator> all;
  for (auto each = guesses_.begin(); each != guesses_.end(); ++each) {
    all.push_back(each);
  }
  const auto end = all.begin() + kMaxPeers / 8;
  std::ranges::nth_element(all, end, {}, [](const auto& each) {
    return std::pair(each->second.count, each->second.until);
  });
  std::for_each(all.begin(), end,
                [this](const auto& each) { guesses_.erase(each); });
}

}  // namespace tensord::server
