// What is known of a call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/engine/host_memory.h"
#include "server/execution/run.h"
#include "server/identity/identity.h"
#include "server/session/session.h"
#include "server/telemetry/metrics.h"
#include "server/telemetry/trace_context.h"

namespace tensord::rpc {

/// One of the contract's methods.
struct Rpc {
  absl::string_view name;  // "Contract"
  server::Metrics::Rpc* metrics;
  /// That a call is; null: none, or several.
  server::Metrics::Operation* operation = nullptr;
  server::Phases* transfer = nullptr;  // null: it is none
  bool only_gives_back = false;        // or keeps: also beyond limits
  bool is_operators = true;            // nobody else may call it
  bool is_anybodys = false;            // nobody is asked who they are
  bool is_audited = false;
  bool is_announced = false;      // audited before it is carried out, too
  bool may_be_unaudited = false;  // carried out when that cannot be
  bool is_elsewhere = false;      // this address does not take it
  bool is_stream = false;         // of requests, responses or both
  bool has_one_request = true;    // which comes after the call has begun
};

/// What is known of one call, from its beginning to its end.
///
/// Threads  those of its call, one at a time.
struct CallRecord {
  const Rpc* rpc = nullptr;
  std::string request_id;
  /// gRPC's name of who asks, which it forgets when the call is cancelled; of
  /// what is for operators or audited.
  std::string peer;
  /// As the caller says, and whether it is traced.
  server::TraceContext trace;
  /// Null until it is known.
  std::shared_ptr<const server::Identity> identity;
  /// To be carried out at most once in its session, whoever repeats it.
  bool is_once = false;
  std::chrono::steady_clock::time_point begun;
  /// The call, or the operation of a stream, when it has ended.
  absl::Duration took;
  /// Where that went; nothing for what neither computes nor transfers.
  server::PhaseTimes phases;
  int64_t received_bytes = 0;  // of messages
  int64_t sent_bytes = 0;

  /// That the request names; null: it names none.
  std::shared_ptr<server::Session> session;
  /// Keeps the session's lease from ending.
  std::optional<server::SessionUse> session_use;
  /// Counts the call itself, its request and its response, until the client has
  /// taken that; as the server's, or as its session's once it has one.
  server::HostHold hold;
  /// Takes back what was made, if nobody hears its name; null: nothing was.
  absl::AnyInvocable<void() &&> undo;

  int64_t ended_operations = 0;  // of a stream

  /// How many of the door's middleware have started the call.
  size_t started_count = 0;

  /// The rpc's, unless the handler knows better.
  server::Metrics::Operation* operation = nullptr;
  absl::string_view kernel;  // that computed it; the handler fills it in
  /// Nothing: it has never been in the device's queue.
  std::optional<server::RunTimes> times;
  std::string subject;  // what an operator's call is about; so is this
};

}  // namespace tensord::rpc
