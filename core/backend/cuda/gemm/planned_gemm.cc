#include "core/backend/cuda/gemm/planned_gemm.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "core/base/checked_math.h"
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

absl::StatusOr<PlannedGemm::Part> PlannedGemm::PartOf(
    const GemmLibrary& library, GemmCall call, int64_t batch_count,
    const GemmLimits& limits, int rank) {
  call.batch_count = batch_count;
  TENSORD_ASSIGN_OR_RETURN(auto proposal, library.Propose(call, limits));
  const size_t count = proposal->algorithms.size();
  if (static_cast<size_t>(rank) >= count) {
    return Unimplemented("NO_GEMM_ALGORITHM", "cuBLASLt proposes ", count,
                         " algorithms, this is number ", rank + 1);
  }
  const GemmAlgorithm* const algorithm = &proposal->algorithms[rank];
  return Part{call, std::move(proposal), algorithm};
}

absl::StatusOr<PlannedGemm::Parts> PlannedGemm::PartsOf(
    const GemmLibrary& library, const GemmCall& call, const GemmLimits& limits,
    int rank) {
  const int64_t count = CeilDivide(call.batch_count, GemmLibrary::kMostBatches);
  const int64_t batches = CeilDivide(call.batch_count, count);
  const int64_t left = call.batch_count % batches;
  TENSORD_ASSIGN_OR_RETURN(Part part,
                           PartOf(library, call, batches, limits, rank));
  Parts parts{std::move(part), std::nullopt};
  if (left != 0) {
    TENSORD_ASSIGN_OR_RETURN(parts.last,
                             PartOf(library, call, left, limits, rank));
  }
  return parts;
}

absl::StatusOr<PlannedGemm> PlannedGemm::Make(const GemmLibrary& library,
                                              const GemmCall& call,
                                              const GemmLimits& limits,
                                              int rank) {
  TENSORD_ASSIGN_OR_RETURN(Parts parts, PartsOf(library, call, limits, rank));
  std::vector<Parts> without_c;
  if (call.c != call.d) {
    GemmCall other = call;
    other.c = call.d;
    TENSORD_ASSIGN_OR_RETURN(Parts others, PartsOf(library, other, limits, 0));
    without_c.push_back(std::move(others));
  }
  return PlannedGemm(call, limits, std::move(parts), std::move(without_c));
}

int64_t PlannedGemm::workspace_bytes() const {
  int64_t most = 0;
  ForEachPart([&](const Part& part) {
    most = std::max(most, Workspace::BytesFor(part.algorithm->workspace_bytes));
  });
  return most;
}

int64_t PlannedGemm::heap_bytes() const {
  int64_t bytes = HeapBytes(without_c_);
  ForEachPart([&](const Part& part) { bytes += part.proposal->bytes(); });
  return bytes;
}

absl::Status PlannedGemm::Launch(const GemmLibrary& library,
                                 const GemmOperands& operands,
                                 Workspace& workspace,
                                 CudaStream& stream) const {
  const auto behind = [](auto* address, const GemmMatrix& matrix,
                         int64_t batch) {
    using Byte = std::conditional_t<
        std::is_const_v<std::remove_pointer_t<decltype(address)>>,
        const std::byte, std::byte>;
    return address == nullptr
               ? nullptr
               : static_cast<Byte*>(address) +
                     batch * matrix.batch_stride * SizeOf(matrix.type);
  };
  const Parts& parts =
      operands.beta.IsZero() && !without_c_.empty() ? without_c_[0] : parts_;
  const int64_t batches = parts.part.call.batch_count;
  for (int64_t first = 0; first < call_.batch_count; first += batches) {
    const bool is_last = first + batches >= call_.batch_count;
    GemmOperands of_part = operands;
    of_part.a = behind(operands.a, call_.a, first);
    of_part.b = behind(operands.b, call_.b, first);
    of_part.c = behind(operands.c, call_.c, first);
    of_part.d = behind(operands.d, call_.d, first);
    // The parts run one after the other, in the same memory.
    Workspace shared = workspace;
    TENSORD_RETURN_IF_ERROR(
        LaunchPart(library, is_last && parts.last ? *parts.last : parts.part,
                   of_part, is_last ? workspace : shared, stream));
  }
  return absl::OkStatus();
}

absl::Status PlannedGemm::LaunchPart(const GemmLibrary& library,
                                     const Part& part,
                                     const GemmOperands& operands,
                                     Workspace& workspace,
                                     CudaStream& stream) const {
  GemmLimits limits{
      .workspace_bytes = workspace.left_bytes(),
      .alignment_bytes = {
          AlignmentOf(operands.a), AlignmentOf(operands.b),
          AlignmentOf(operands.beta.IsZero() ? operands.d : operands.c),
          AlignmentOf(operands.d)}};
  bool is_as_planned = Workspace::BytesFor(part.algorithm->workspace_bytes) <=
                       limits.workspace_bytes;
  for (size_t i = 0; i < limits.alignment_bytes.size(); ++i) {
    is_as_planned &= limits.alignment_bytes[i] >= limits_.alignment_bytes[i];
  }
  std::shared_ptr<const GemmProposal> proposal = part.proposal;
  const GemmAlgorithm* algorithm = part.algorithm;
  if (!is_as_planned) {
    auto proposed = library.Propose(part.call, limits);
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
