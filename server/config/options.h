// The server's options.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/config/config_file.h"
#include "server/engine/engine.h"
#include "server/identity/authenticator.h"
#include "server/identity/certificates.h"
#include "server/session/session_manager.h"
#include "server/telemetry/log.h"

namespace tensord::server {

/// Where and to whom metrics and probes are shown.
struct MonitoringOptions {
  std::string metrics;     // "HOST:PORT"; empty: nowhere
  std::string probes;      // the same
  CertificateFiles tls;    // for metrics; no certificate: no TLS
  std::string token_file;  // for metrics; empty: they are for everybody
};

/// Which calls' traces are sent where.
struct TraceOptions {
  std::string collector;  // "HOST:PORT" or "unix:PATH"; empty: nowhere
  double ratio = 0.01;    // of calls whose caller does not say it
};

struct Options {
  std::vector<std::string> listen = {"localhost:8470"};
  /// For operators; none: `listen` takes what they ask.
  std::vector<std::string> admin_listen;
  int64_t max_connections = 16'384;
  int64_t max_connections_per_peer = 4'096;
  int socket_mode = 0;   // permissions of Unix sockets; 0: as the umask says
  CertificateFiles tls;  // no certificate: no TLS
  Authenticator::Options identity;
  std::string tenants;  // a file; empty: none
  bool takes_shared_memory = true;
  bool allow_insecure_remote = false;
  bool allows_remote = false;  // that, or TLS and whoever asks is known
  int loop_count = 2;
  absl::Duration drain_timeout = absl::Seconds(10);
  absl::Duration transfer_idle = absl::Seconds(30);
  absl::Duration stream_idle = absl::Hours(1);
  std::optional<bool> exit_on_device_loss;  // null: of one accelerator at most
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kText;
  std::string audit_log;  // a file; empty: standard error
  EngineOptions engine;
  SessionLimits sessions;
  std::string plan_store;  // a file; empty: none
  absl::Duration plan_store_interval = absl::Minutes(5);
  std::string plan_exchange;  // a Redis; empty: none
  std::string plan_exchange_password;
  absl::Duration plan_exchange_interval = absl::Seconds(10);
  MonitoringOptions monitoring;
  TraceOptions traces;
  std::vector<Setting> settings;  // all of these, as `--print-config` has them
};

/// What a command line sets, or else the environment, or else the file that
/// `--config` names; or the exit status of a process that has printed its help,
/// version, configuration or a usage error.
std::variant<Options, int> ParseOptions(int argc, const char* const* argv,
                                        const char* const* environment);

/// As an address to listen on: the sockets that systemd has passed.
inline constexpr absl::string_view kListenSystemd = "systemd";

/// Whether this machine alone reaches an address: a Unix socket, or loopback's.
bool IsOfThisMachine(absl::string_view address);

/// OK when a server may listen there without TLS: at an address of this
/// machine, or anything with `allow_remote`. `flag` is where it stands:
/// "--listen".
///
/// Errors  INVALID_ARGUMENT, reason LISTEN_NEEDS_TLS or ADDRESS_MALFORMED.
absl::Status ValidateListen(absl::string_view flag, absl::string_view address,
                            bool allow_remote);

}  // namespace tensord::server
