// What the handlers of all services share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/config/process_control.h"
#include "server/engine/engine.h"
#include "server/engine/plan_exchange.h"
#include "server/engine/plan_store.h"
#include "server/execution/background.h"
#include "server/execution/program/preparation.h"
#include "server/rpc/coroutine/parser.h"
#include "server/rpc/door/door.h"
#include "server/rpc/tracing/tracing.h"
#include "server/session/session_manager.h"
#include "server/shared_memory/broker.h"
#include "server/telemetry/health.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"
#include "server/telemetry/timelines.h"

namespace tensord::rpc {

/// Bounds on messages; GetServerInfo tells them.
struct MessageLimits {
  int64_t max_chunk_bytes = int64_t{2} << 20;
  int64_t max_inline_bytes = int64_t{1} << 20;
  int64_t max_message_bytes = int64_t{4} << 20;
};

/// Lifetime  all that it refers to outlives the server.
struct ServiceContext {
  server::Engine& engine;
  server::SessionManager& sessions;
  server::Log& log;
  server::Metrics& metrics;
  server::Health& health;
  server::PlanStore* plan_store = nullptr;  // null: there is none; so here
  server::PlanExchange* plan_exchange = nullptr;
  server::Authenticator* authenticator = nullptr;
  int64_t queue_limit = 0;
  MessageLimits limits;
  /// How long a client may neither send nor take anything.
  absl::Duration transfer_idle = absl::Seconds(30);
  /// How long a stream of operations may ask for nothing.
  absl::Duration stream_idle = absl::Hours(1);
  absl::Time start = absl::Now();
  TraceExport trace_export = {};
  std::vector<Middleware*> middleware = {};  // the door's besides its own
  server::Timelines timelines = {};
  Tracing tracing{metrics, timelines, trace_export};
  server::ProcessControl process = {};
  shared_memory::Broker* shared_memory = nullptr;  // null: there is none
  const Door door{sessions,      metrics,       log,
                  authenticator, transfer_idle, WithTracing()};
  Parser parser{sessions.host_memory()};
  server::Preparer preparer{engine};
  /// Where what operators ask for is done, as that of clients may take all the
  /// preparer's threads.
  server::Background operators{2, 1024};

  /// Most operations of one ExecuteStream without a response: enough to keep a
  /// device busy, and never so many that one stream alone fills its queue.
  static constexpr int64_t kMostStreamOperations = 64;
  int64_t max_stream_operations() const {
    return std::min(kMostStreamOperations, queue_limit);
  }

 private:
  std::vector<Middleware*> WithTracing() {
    std::vector<Middleware*> all = middleware;
    all.insert(all.begin(), &tracing);
    return all;
  }
};

}  // namespace tensord::rpc
