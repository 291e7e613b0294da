// What is known of a call.
#pragma once

#include <grpcpp/server_context.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/engine/host_memory.h"
#include "server/session/session.h"
#include "server/telemetry/metrics.h"

namespace tensord::rpc {

/// Who asks. One for all, as long as nobody has to say who they are.
struct Identity {
  std::string tenant = "default";
};

/// One of the contract's methods.
struct Rpc {
  absl::string_view name;       // "Contract"
  absl::string_view operation;  // that a call is; "": it is none, or several
  server::Metrics::Rpc* metrics;
  bool is_counted;  // as a request of its session
};

/// What is known of one call, from its beginning to its end.
///
/// Threads  those of its call, one at a time.
struct CallRecord {
  const Rpc* rpc = nullptr;
  std::string request_id;
  Identity identity;
  std::chrono::steady_clock::time_point begun;
  std::chrono::steady_clock::time_point ended;
  int64_t received_bytes = 0;  // of messages
  int64_t sent_bytes = 0;

  /// The one that the request names; null: it names none.
  std::shared_ptr<server::Session> session;
  /// Keeps its lease.
  std::optional<server::SessionUse> session_use;
  /// Counts request and response until the client has taken that.
  server::HostHold hold;

  // Filled in by handlers.
  absl::string_view operation;  // in place of the rpc's, which it is at first
  absl::string_view kernel;     // that computed it
};

}  // namespace tensord::rpc
