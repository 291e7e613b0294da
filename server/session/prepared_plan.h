// An operation that is validated and planned before it runs.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/plan/plan.h"
#include "server/session/operation_request.h"

namespace tensord::server {

/// What one execution of a plan brings along. Views into the message.
struct PlanExecution {
  /// A tensor's name, or its memory.
  using Source = std::variant<std::string, absl::string_view>;

  std::optional<Source> a, b, c;
  std::string d;          // existing tensor, or "" for a new one
  std::string tensor_id;  // of a new one
  bool is_inline = false;
  std::optional<core::Scalar> alpha, beta, gamma;  // absent: the plan's
};

/// An operation on operands that are like those it was made for.
///
/// Threads   safe for concurrent use.
/// Lifetime  shared by the session and by requests under way.
class PreparedPlan {
 public:
  /// `request` on `tensors`, with the key by which it is planned. `output` is
  /// what d is like, also when it will be new.
  PreparedPlan(std::string name, const OperationRequest& request,
               OperationTensors tensors, core::TensorDesc output,
               core::PlanKey key);

  const std::string& name() const { return name_; }
  /// Sources of operands say what they are like and have no data.
  const OperationRequest& request() const { return request_; }
  /// a, b, c and d; also a new d.
  const OperationTensors& tensors() const { return tensors_; }
  const core::PlanKey& key() const { return key_; }

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

  void CountExecution() const { ++execution_count_; }
  int64_t execution_count() const { return execution_count_; }

 private:
  const std::string name_;
  OperationRequest request_;
  OperationTensors tensors_;
  const core::PlanKey key_;
  mutable std::atomic<int64_t> execution_count_ = 0;
};

}  // namespace tensord::server
