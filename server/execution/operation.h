// One operation, from names and labels to a run.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/plan/plan.h"
#include "core/tensor/tensor.h"
#include "server/engine/engine.h"
#include "server/execution/operation_request.h"
#include "server/execution/run.h"
#include "server/session/session.h"

namespace tensord::server {

/// A request as it is planned.
struct PlannedOperation {
  OperationTensors tensors;
  PerResult<core::TensorDesc> results;  // also when they are new
  core::PlanKey key;
};

/// What PrepareOperation() does before it asks for a plan, without announcing
/// anything or needing contents; inline operands need no data.
///
/// Errors  every error that the request itself can have, and NOT_FOUND.
absl::StatusOr<PlannedOperation> PlanOperation(const Session& session,
                                               const OperationRequest& request);

/// A run of one step. Finds and validates everything and announces reads and
/// writes, in the order of arrival. `max_inline_bytes` bounds the inline
/// operands together, and the inline results.
///
/// Errors  every error that the request itself can have, and NOT_FOUND,
///         FAILED_PRECONDITION for its tensors; UNAVAILABLE: the device is
///         lost. Nothing has changed then.
absl::StatusOr<std::unique_ptr<Run>> PrepareOperation(
    Engine& engine, std::shared_ptr<Session> session,
    const OperationRequest& request, int64_t max_inline_bytes);

}  // namespace tensord::server
