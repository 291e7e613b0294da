// What channels to one server, and calls on them, need to be let in.
#pragma once

#include <grpcpp/security/credentials.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tensord/credentials.h"

namespace tensord::internal {

/// Whether what is sent to `address` stays on this machine.
bool IsLocal(const std::string& address);

/// A bearer token, which messages never show.
///
/// Threads  safe for concurrent use.
class Token {
 public:
  /// `origin` is how it was given, for messages. The token is `secret` or, if
  /// that is empty, what the file at `path` holds.
  static absl::StatusOr<std::unique_ptr<Token>> Read(std::string origin,
                                                     absl::string_view secret,
                                                     std::string path);

  /// What messages call it.
  std::string name() const;

  /// "Bearer ...". Of a file that is replaced, the new one; the old one as long
  /// as the new one is unreadable.
  std::string authorization();

 private:
  /// Of a file: device, inode, time in nanoseconds, size.
  using Signature = std::tuple<dev_t, ino_t, int64_t, int64_t>;

  Token(std::string origin, std::string path);
  Signature FileSignature() const;
  absl::Status Take(absl::string_view secret)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string origin_;
  const std::string path_;
  absl::Mutex mutex_;
  std::string authorization_ ABSL_GUARDED_BY(mutex_);
  Signature seen_ ABSL_GUARDED_BY(mutex_);
  absl::Time looked_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

/// Threads  safe for concurrent use.
class Access {
 public:
  /// Errors  INVALID_ARGUMENT: those of Credentials.
  static absl::StatusOr<std::unique_ptr<Access>> Resolve(
      std::string address, const Credentials& given);

  const std::shared_ptr<grpc::ChannelCredentials>& channel_credentials() const {
    return channel_credentials_;
  }

  /// Of each call; "" without a token.
  std::string authorization() const;

  /// `status`, in words that name the cause if that is TLS.
  ///
  /// Requires  gRPC made it, not the server.
  absl::Status Explain(const absl::Status& status) const;

 private:
  Access() = default;
  absl::Status ResolveTls(const Credentials& given);
  absl::Status ResolveToken(const Credentials& given);

  std::string address_;
  std::string authorities_;  // "" without TLS
  std::string cert_;
  std::string key_;
  std::shared_ptr<grpc::ChannelCredentials> channel_credentials_;
  std::unique_ptr<Token> token_;
};

}  // namespace tensord::internal
