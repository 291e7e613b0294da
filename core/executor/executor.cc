#include "core/executor/executor.h"

#include <cstddef>
#include <span>

#include "core/base/status.h"
#include "core/memory/workspace.h"

namespace tensord::core {
namespace {

absl::Status Stopped() {
  return absl::CancelledError("the operation was stopped");
}

}  // namespace

absl::Status Execute(const Plan& plan, const AnyOperands& operands,
                     const Buffer& scratch, Stream& stream) {
  if (plan.solution == nullptr) return absl::OkStatus();
  if (plan.kernel.index() != operands.index()) {
    return Internal("WRONG_OPERANDS",
                    "the plan is of an operation, the operands of another");
  }
  // Of a larger block no more: what kernels do may not depend on it.
  Workspace workspace(
      std::span(scratch.data(), static_cast<size_t>(plan.workspace_bytes())));
  const CurrentWork work(stream.interruption());
  if (CurrentWork::ShouldStop()) return Stopped();
  TENSORD_RETURN_IF_ERROR(std::visit(
      [&]<typename Operands>(const Operands& given) {
        return static_cast<const Solution<Operands>&>(*plan.solution)
            .Launch(given, workspace, stream);
      },
      operands));
  const Interruption* const interruption = stream.interruption();
  return interruption != nullptr && interruption->is_cut() ? Stopped()
                                                           : absl::OkStatus();
}

}  // namespace tensord::core
