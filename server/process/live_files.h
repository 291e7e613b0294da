// The files that may change while the server runs.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/config/options.h"
#include "server/config/process_control.h"
#include "server/engine/engine.h"
#include "server/identity/authenticator.h"
#include "server/identity/certificates.h"
#include "server/identity/file_watch.h"
#include "server/session/session_manager.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace tensord::server {

/// Certificates, tokens with the keys of JWTs, and tenants. What is read again
/// is logged and counted; of a file that is not good the last contents stay.
/// The audit log's is opened anew when all of them are read again.
///
/// Threads   its methods are called by one thread, but for Reload().
/// Lifetime  all that it refers to outlives it.
class LiveFiles {
 public:
  LiveFiles(const Options& options, Metrics& metrics, Log& log);

  /// Has audit lines go to their file, if there is one. Errors  as Log.
  absl::Status OpenAudit();
  /// Reads certificates, and says when they end. Errors  as Certificates.
  absl::Status ReadCertificates();
  /// Reads who asks. Errors  as Authenticator.
  absl::Status ReadIdentities();
  /// Has `sessions` and `engine` do as the file of tenants says, from now on.
  /// Once, after the others.
  ///
  /// Errors    as ParseTenants().
  /// Lifetime  both outlive it.
  absl::Status Follow(SessionManager& sessions, Engine& engine);
  /// Reads files again that have changed since this was made, or change.
  void Start() { watch_.Start(); }
  /// Says again, once a day, which certificates end soon.
  void WarnOfExpiry();
  /// Has all of them read again soon.
  void ReadAll() { watch_.ReadAll(); }
  /// Reads all of them again now. From any thread, once Follow() has returned.
  std::vector<ReloadedFiles> Reload();

  /// Null without TLS: of gRPC, and of metrics.
  const Certificates* certificates() const { return certificates_.get(); }
  const Certificates* metrics_certificates() const {
    return metrics_certificates_.get();
  }
  /// There is one once identities are read.
  Authenticator& authenticator() const { return *authenticator_; }

 private:
  struct Followed {
    std::string what;
    std::vector<std::string> paths;
    std::function<absl::Status()> reload;
  };

  absl::Status ApplyTenants(SessionManager& sessions, Engine& engine);
  absl::Status ReloadCertificates(Certificates& certificates);
  /// Has `reload` called when `paths` have changed, if they are watched, and by
  /// ReadAll() and Reload().
  void Follow(std::string what, std::vector<std::string> paths,
              std::function<absl::Status()> reload, bool is_watched = true);
  void Tell(absl::string_view what, const absl::Status& status);

  const Options& options_;
  Metrics& metrics_;
  Log& log_;
  std::unique_ptr<Certificates> certificates_;
  std::unique_ptr<Certificates> metrics_certificates_;
  std::unique_ptr<Authenticator> authenticator_;
  absl::Mutex reloading_;  // held while anything is read again
  std::deque<Followed> followed_;
  absl::Time warned_ = absl::Now();
  FileWatch watch_;  // ends before what it calls
};

}  // namespace tensord::server
