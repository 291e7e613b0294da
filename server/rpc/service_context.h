// What the handlers of all services share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/engine/engine.h"
#include "server/engine/plan_exchange.h"
#include "server/engine/plan_store.h"
#include "server/rpc/coroutine/loop.h"
#include "server/rpc/coroutine/task.h"
#include "server/session/operation_request.h"
#include "server/session/prepared_plan.h"
#include "server/session/program/prepared_program.h"
#include "server/session/session.h"
#include "server/session/session_manager.h"
#include "server/session/stored_tensor.h"
#include "server/telemetry/log.h"
#include "server/telemetry/statistics.h"

namespace tensord::rpc {

/// Bounds on messages; GetServerInfo tells them.
struct MessageLimits {
  int64_t max_chunk_bytes = int64_t{2} << 20;
  int64_t max_inline_bytes = int64_t{1} << 20;
  int64_t max_message_bytes = int64_t{4} << 20;
};

/// A tensor of a session.
struct FoundTensor {
  std::shared_ptr<server::Session> session;
  std::shared_ptr<server::StoredTensor> tensor;
};

/// A plan of a session.
struct FoundPlan {
  std::shared_ptr<server::Session> session;
  std::shared_ptr<const server::PreparedPlan> plan;
};

/// A program of a session.
struct FoundProgram {
  std::shared_ptr<server::Session> session;
  std::shared_ptr<const server::PreparedProgram> program;
};

/// Lifetime  all that it refers to outlives the server.
struct ServiceContext {
  server::Engine& engine;
  server::SessionManager& sessions;
  server::Log& log;
  server::Statistics& statistics;
  server::PlanStore* plan_store = nullptr;  // null: there is none; so here
  server::PlanExchange* plan_exchange = nullptr;
  int64_t queue_limit = 0;
  MessageLimits limits;
  absl::Time start = absl::Now();

  /// Errors  INVALID_ARGUMENT: not a tensor's name. NOT_FOUND.
  absl::StatusOr<FoundTensor> FindTensor(absl::string_view tensor_name) const;
  /// Errors  INVALID_ARGUMENT: not a plan's name. NOT_FOUND.
  absl::StatusOr<FoundPlan> FindPlan(absl::string_view plan_name) const;
  /// Errors  INVALID_ARGUMENT: not a program's name. NOT_FOUND.
  absl::StatusOr<FoundProgram> FindProgram(
      absl::string_view program_name) const;

  /// Most operations of one ExecuteStream without a response: enough to keep a
  /// device busy, and never so many that one stream alone fills its queue.
  int64_t max_stream_operations() const {
    return std::min<int64_t>(64, queue_limit);
  }
};

}  // namespace tensord::rpc
