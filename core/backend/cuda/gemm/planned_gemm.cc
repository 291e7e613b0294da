#include "core/backend/cuda/gemm/planned_gemm.h"

#include <algorithm>
#include <utility>

#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

/// The largest power of two that `address` is a multiple of, up to what is of
/// use.
int64_t AlignmentOf(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  int64_t bytes = GemmLimits::kWidestAccess;
  while (bits % static_cast<uintptr_t>(bytes) != 0) bytes /= 2;
  return bytes;
}

}  // namespace

GemmLimits LimitsOf(int64_t workspace_bytes, int64_t alignment_bytes) {
  GemmLimits limits{.workspace_bytes = workspace_bytes};
  limits.alignment_bytes.fill(
      std::min(alignment_bytes, GemmLimits::kWidestAccess));
  return limits;
}

absl::StatusOr<PlannedGemm> PlannedGemm::Make(const GemmLibrary& library,
                                              const GemmCall& call,
                                              const GemmLimits& limits,
                                              int rank) {
  TENSORD_ASSIGN_OR_RETURN(auto proposal, library.Propose(call, limits));
  const size_t count = proposal->algorithms.size();
  if (static_cast<size_t>(rank) >= count) {
    return Unimplemented("NO_GEMM_ALGORITHM", "cuBLASLt proposes ", count,
                         " algorithms, this is number ", rank + 1);
  }
  return PlannedGemm(call, limits, std::move(proposal),
                     static_cast<size_t>(rank));
}

absl::Status PlannedGemm::Launch(const GemmLibrary& library,
                                 const GemmOperands& operands,
                                 Workspace& workspace,
                                 CudaStream& stream) const {
  GemmCall call = call_;
  if (operands.beta.IsZero()) call.c = call.d;
  GemmLimits limits{
      .workspace_bytes = workspace.left_bytes(),
      .alignment_bytes = {
          AlignmentOf(operands.a), AlignmentOf(operands.b),
          AlignmentOf(operands.beta.IsZero() ? operands.d : operands.c),
          AlignmentOf(operands.d)}};
  bool is_as_planned =
      call == call_ && workspace_bytes() <= limits.workspace_bytes;
  for (size_t i = 0; i < limits.alignment_bytes.size(); ++i) {
    is_as_planned &= limits.alignment_bytes[i] >= limits_.alignment_bytes[i];
  }
  std::shared_ptr<const GemmProposal> proposal = proposal_;
  const GemmAlgorithm* algorithm = algorithm_;
  if (!is_as_planned) {
    auto proposed = library.Propose(call, limits);
    if (absl::IsUnimplemented(proposed.status())) {
      return Internal("NO_GEMM_ALGORITHM",
                      "cuBLASLt has no algorithm for addresses aligned worse "
                      "than was planned with");
    }
    TENSORD_RETURN_IF_ERROR(proposed.status());
    proposal = *std::move(proposed);
    algorithm = &proposal->algorithms.front();
  }
  std::byte* const memory =
      workspace.Take<std::byte>(algorithm->workspace_bytes);
  return library.Launch(*proposal, *algorithm, operands, memory, stream);
}

}  // namespace tensord::core::cuda
