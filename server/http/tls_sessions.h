// TLS for connections that are not gRPC's.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/identity/certificates.h"

namespace tensord::http {

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslSession = std::unique_ptr<SSL, FreeSsl>;

/// The server's side of TLS 1.2 and later, by certificates that may change.
///
/// Threads   safe for concurrent use.
/// Lifetime  the certificates outlive it.
class TlsSessions {
 public:
  explicit TlsSessions(const server::Certificates& certificates)
      : certificates_(certificates) {}

  /// For a new connection.
  SslSession New();

 private:
  const server::Certificates& certificates_;
  absl::Mutex mutex_;
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;  // of what context_ is made of
  std::unique_ptr<SSL_CTX, FreeSsl> context_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::http
