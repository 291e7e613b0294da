#include "core/backend/cuda/gemm/planned_gemm.h"

#include <algorithm>
#include <vector>

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

absl::StatusOr<PlannedGemm> PlannedGemm::Make(const GemmLibrary& library,
                                              const GemmCall& call,
                                              int64_t alignment_bytes,
                                              int64_t workspace_limit_bytes,
                                              int rank) {
  GemmLimits limits{.workspace_bytes = workspace_limit_bytes};
  limits.alignment_bytes.fill(
      std::min(alignment_bytes, GemmLimits::kWidestAccess));
  TENSORD_ASSIGN_OR_RETURN(const std::vector<GemmAlgorithm> proposed,
                           library.Propose(call, limits));
  if (static_cast<size_t>(rank) >= proposed.size()) {
    return Unimplemented("NO_GEMM_ALGORITHM", "cuBLASLt proposes ",
                         proposed.size(), " algorithms, this is number ",
                         rank + 1);
  }
  return PlannedGemm(call, limits, proposed[static_cast<size_t>(rank)]);
}

absl::Status PlannedGemm::Launch(const GemmLibrary& library,
                                 const GemmOperands& operands,
                                 Workspace& workspace,
                                 CudaStream& stream) const {
  std::byte* const memory =
      workspace.Take<std::byte>(algorithm_.workspace_bytes);
  GemmCall call = call_;
  if (operands.beta.IsZero()) call.c = call.d;
  GemmLimits limits{.workspace_bytes = algorithm_.workspace_bytes};
  limits.alignment_bytes = {
      AlignmentOf(operands.a), AlignmentOf(operands.b),
      AlignmentOf(operands.beta.IsZero() ? operands.d : operands.c),
      AlignmentOf(operands.d)};
  bool is_as_planned = call == call_;
  for (size_t i = 0; i < limits.alignment_bytes.size(); ++i) {
    is_as_planned &= limits.alignment_bytes[i] >= limits_.alignment_bytes[i];
  }
  if (is_as_planned) {
    return library.Launch(call, algorithm_, operands, memory, stream);
  }
  const auto proposed = library.Propose(call, limits);
  if (absl::IsUnimplemented(proposed.status())) {
    return Internal("NO_GEMM_ALGORITHM", "cuBLASLt has no algorithm for ",
                    "addresses aligned worse than was planned with");
  }
  TENSORD_RETURN_IF_ERROR(proposed.status());
  return library.Launch(call, proposed->front(), operands, memory, stream);
}

}  // namespace tensord::core::cuda
