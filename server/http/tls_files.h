// A certificate and its key, from files that may change.
#pragma once

#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace tensord::http {

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslSession = std::unique_ptr<SSL, FreeSsl>;

/// The server's side of TLS 1.2 and later.
///
/// Threads  safe for concurrent use.
class TlsFiles {
 public:
  /// Hears why changed files were not taken.
  using Refused = std::function<void(const absl::Status&)>;

  /// `certificate` has the chain, too; both are PEM.
  /// Errors  INVALID_ARGUMENT, reason TLS_FILES_WRONG: which file, and why.
  static absl::StatusOr<std::unique_ptr<TlsFiles>> Read(std::string certificate,
                                                        std::string key,
                                                        Refused refused);

  /// For a new connection; by the files as they are now, or were when they
  /// were last right.
  SslSession NewSession();

 private:
  using Context = std::unique_ptr<SSL_CTX, FreeSsl>;

  TlsFiles(std::string certificate, std::string key, Refused refused)
      : certificate_(std::move(certificate)),
        key_(std::move(key)),
        refused_(std::move(refused)) {}

  absl::StatusOr<Context> Load() const;

  const std::string certificate_;
  const std::string key_;
  const Refused refused_;
  absl::Mutex mutex_;
  std::string version_ ABSL_GUARDED_BY(mutex_);  // of the files last looked at
  Context context_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::http
