// Finds out who asks.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/identity/identity.h"
#include "server/identity/jwt.h"
#include "server/identity/tenants.h"
#include "server/identity/token_file.h"

namespace tensord::server {

/// Says who somebody is by a client's certificate, a bearer token of a file, a
/// JWT, as a user of this machine, or, where nothing of that is configured,
/// that everybody may do everything.
///
/// Threads  safe for concurrent use.
class Authenticator {
 public:
  struct Options {
    bool takes_certificates = false;
    bool takes_users = false;    // of this machine
    bool serves_others = false;  // than this machine
    /// Names of certificates of operators. Without any, and without a file of
    /// tenants, all are where no others are served.
    std::vector<std::string> operators;
    std::string tokens;    // a file, as token_file.h has it; "": none
    std::string jwt_keys;  // a JWKS file; "": no JWTs
    JwtRules jwt_rules;
    std::function<absl::Time()> now = &absl::Now;  // another one in tests alone
  };

  /// What a call brings.
  struct Credentials {
    absl::string_view peer;  // without a port
    /// Common name and URIs of a certificate that an authority of the server's
    /// has signed; empty: there is none.
    std::vector<absl::string_view> certificate;
    /// Of this machine, who calls over a Unix socket; nothing: it is not known.
    std::optional<uid_t> user;
    /// Behind `Bearer` in the metadata `authorization`; "": nothing.
    absl::string_view bearer;
  };

  /// Errors  as Reload().
  static absl::StatusOr<std::unique_ptr<Authenticator>> Create(Options options);

  /// Reads the files again; of one that is not good it keeps what it has. What
  /// tokens and keys that are gone proved holds no longer.
  ///
  /// Errors  NOT_FOUND, reason FILE_UNREADABLE. INVALID_ARGUMENT, reason
  ///         TOKEN_FILE_MALFORMED or JWKS_MALFORMED.
  absl::Status Reload();

  /// Whom certificates and users stand for. Without this, all certificates that
  /// an authority has signed stand for the tenant `default`.
  void SetTenants(const TenantsFile& file);

  /// Whether anything at all says who somebody is.
  bool asks() const {
    return options_.takes_certificates || takes_users() || asks_for_bearer();
  }
  bool takes_users() const { return options_.takes_users; }
  /// Whether other machines are served. Where nobody is asked, who comes from
  /// there is no operator.
  bool serves_others() const { return options_.serves_others; }
  /// Whether a user of this machine is of a tenant.
  bool Knows(uid_t user);
  bool asks_for_bearer() const {
    return !options_.tokens.empty() || !options_.jwt_keys.empty();
  }
  /// Operators that are known by name, as Identity::name() has them, sorted.
  std::vector<std::string> operators();
  /// Whether every certificate is an operator's.
  bool all_certificates_are_operators();
  /// The files that Reload() reads.
  std::vector<std::string> paths() const;

  /// Errors  UNAUTHENTICATED, reason CREDENTIALS_MISSING, CERTIFICATE_UNKNOWN,
  ///         USER_UNKNOWN, IDENTITIES_DIFFER, TOKEN_INVALID, TOKEN_EXPIRED, or
  ///         TOO_MANY_GUESSES: the peer has brought so many bad tokens that
  ///         others are not looked at for a while.
  absl::StatusOr<std::shared_ptr<const Identity>> Identify(
      const Credentials& credentials);

 private:
  using Shared = std::shared_ptr<const Identity>;
  using ByName = std::map<std::string, Shared, std::less<>>;
  using ByUser = std::map<uid_t, Shared>;
  /// What tokens and JWTs are looked at with.
  struct Proofs {
    std::map<std::string, Token, std::less<>> tokens;  // by id
    std::optional<JwtKeys> jwt_keys;
  };
  /// What a token has proved.
  struct Proved {
    Shared identity;
    std::optional<Token> token;        // none: it is a JWT
    std::shared_ptr<evp_pkey_st> key;  // that has signed the JWT

    bool HoldsWith(const Proofs& proofs) const;
  };
  /// The same, as long as a call has it.
  struct Unremembered {
    std::weak_ptr<const Identity> identity;
    Proved proved;  // without identity
  };
  struct Guesses {
    int64_t count = 0;
    absl::Time until;  // not looked at before
  };

  explicit Authenticator(Options options) : options_(std::move(options)) {}

  absl::Status ReloadTokens();
  absl::Status ReloadKeys();
  /// Forgets what `proofs` do not prove, and revokes it.
  void SetProofs(Proofs proofs) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Status Missing() const;
  /// Where no file says whose a certificate is.
  Shared OfSigned(const std::vector<absl::string_view>& names) const;
  absl::StatusOr<Shared> OfCertificate(
      const std::vector<absl::string_view>& names) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<Shared> OfBearer(absl::string_view peer,
                                  absl::string_view bearer)
      ABSL_LOCKS_EXCLUDED(mutex_);
  /// Null: the token of that digest has proved nothing.
  Shared FindProved(absl::string_view digest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Shared Remember(absl::string_view digest, Proved proved)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Proved> Verify(const Proofs& proofs,
                                absl::string_view bearer) const;
  /// OK unless the peer has to wait.
  absl::Status CheckGuesses(absl::string_view peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountGuess(absl::string_view peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Makes room in `guesses_`.
  void ForgetGuesses() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const Shared anybody_ = std::make_shared<const Identity>();
  absl::Mutex mutex_;
  // Looked at without the lock, which what is new replaces.
  std::shared_ptr<const Proofs> proofs_ ABSL_GUARDED_BY(mutex_) =
      std::make_shared<const Proofs>();
  // By certificate's name; none: they are all of one.
  std::optional<ByName> certificates_ ABSL_GUARDED_BY(mutex_);
  ByUser users_ ABSL_GUARDED_BY(mutex_);
  // What tokens have proved, by the SHA-256 of the whole token: where one is
  // found says nothing about others.
  absl::flat_hash_map<std::string, Proved> proved_ ABSL_GUARDED_BY(mutex_);
  // Those for which there was no room.
  std::vector<Unremembered> unremembered_ ABSL_GUARDED_BY(mutex_);
  absl::Time swept_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::map<std::string, Guesses, std::less<>> guesses_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
