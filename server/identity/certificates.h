// The server's certificate and key, and whose clients' it takes.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tensord::server {

/// PEM files.
struct CertificateFiles {
  std::string
      certificate;  // the server's, and those that lead to its authority
  std::string key;
  std::string
      client_ca;  // authorities of clients; "": theirs are not asked for

  /// Those that are named.
  std::vector<std::string> paths() const;
};

/// What such files held when they were last good.
///
/// Threads  safe for concurrent use.
class Certificates {
 public:
  struct Contents {
    std::string certificate;
    std::string key;
    std::string client_ca;
    std::set<std::string> authorities;  // of clients, as DER
    absl::Time expires;                 // the first of the server's chain
    uint64_t version = 0;               // more with each change
    /// More with each change that takes an authority out: whom it has signed
    /// may still have connections.
    uint64_t loss_count = 0;
  };

  /// Errors  NOT_FOUND, reason FILE_UNREADABLE. INVALID_ARGUMENT, reason
  ///         CERTIFICATE_INVALID: which file, and what was wanted.
  static absl::StatusOr<std::unique_ptr<Certificates>> Load(
      CertificateFiles files);

  /// Reads the files again; keeps what it has if they are not good.
  /// Errors  as Load().
  absl::Status Reload();

  std::shared_ptr<const Contents> contents() const;
  const CertificateFiles& files() const { return files_; }

 private:
  explicit Certificates(CertificateFiles files) : files_(std::move(files)) {}

  const CertificateFiles files_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const Contents> contents_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
