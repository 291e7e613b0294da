#include "core/executor/executor.h"

#include <cstddef>
#include <span>

#include "core/base/status.h"
#include "core/memory/workspace.h"

namespace tensord::core {
namespace {

template <typename Problem, typename Operands>
absl::Status Launch(const Kernel<Problem, Operands>* kernel, const Plan& plan,
                    const AnyOperands& operands, Workspace& workspace,
                    Stream& stream) {
  return kernel->Launch(std::get<Problem>(plan.problem),
                        std::get<Operands>(operands), workspace, stream);
}

}  // namespace

absl::Status Execute(const Plan& plan, const AnyOperands& operands,
                     const Buffer& scratch, Stream& stream) {
  if (plan.kernel_name().empty()) return absl::OkStatus();
  // Of a larger block no more: what kernels do may not depend on it.
  Workspace workspace(
      std::span(scratch.data(), static_cast<size_t>(plan.workspace_bytes)));
  return std::visit(
      [&](const auto* kernel) {
        return Launch(kernel, plan, operands, workspace, stream);
      },
      plan.kernel);
}

}  // namespace tensord::core
