// An operation that is validated and planned before it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/plan/plan.h"
#include "server/execution/operation.h"
#include "server/execution/operation_request.h"
#include "server/execution/prepared.h"

namespace tensord::server {

/// What one execution of a plan brings along. Views into the message.
struct PlanExecution {
  struct Source {
    std::variant<std::string, absl::string_view> tensor;  // name, or memory
    std::optional<ViewRequest> view = {};  // of one that has a name
  };

  struct Result {
    std::string tensor;                    // existing one, or "" for a new one
    std::optional<ViewRequest> view = {};  // of an existing one
    std::string tensor_id;                 // of a new one
    bool is_inline = false;
  };

  PerInput<std::optional<Source>> inputs;
  PerResult<Result> results;                       // those left out are new
  std::optional<core::Scalar> alpha, beta, gamma;  // absent: the plan's
};

/// An operation on operands that are like those it was made for.
class PreparedPlan final : public Prepared {
 public:
  /// `request` as it was `planned`.
  PreparedPlan(const OperationRequest& request, PlannedOperation planned);

  /// Sources of operands say what they are like and have no data.
  const OperationRequest& request() const { return request_; }
  /// All of them; also results that will be new.
  const OperationTensors& tensors() const { return tensors_; }
  const core::PlanKey& key() const { return keys()[0]; }

  /// The operation that runs it once.
  ///
  /// Errors  INVALID_ARGUMENT, reasons PLAN_HAS_NO_OPERAND; PLAN_HAS_NO_FACTOR;
  ///         INPUT_MISSING: a factor is not 0, and its operand is left out;
  ///         OUTPUT_AMBIGUOUS.
  absl::StatusOr<OperationRequest> RequestFor(
      const PlanExecution& execution) const;

  /// OK when `tensors`, those that are there, are like the plan's.
  ///
  /// Errors  INVALID_ARGUMENT, reason PLAN_OPERAND_DIFFERS.
  absl::Status CheckOperands(const OperationTensors& tensors) const;
  /// The same of results alone.
  absl::Status CheckResults(
      const PerResult<std::optional<core::TensorDesc>>& results) const;

  int64_t size_bytes() const override;

 private:
  OperationRequest request_;
  OperationTensors tensors_;
};

}  // namespace tensord::server
