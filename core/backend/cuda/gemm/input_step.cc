#include "core/backend/cuda/gemm/input_step.h"

#include <utility>

#include "core/backend/cuda/contraction/step.h"
#include "core/backend/cuda/gemm/gemm_cost.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

constexpr size_t kA = PermutationProblem::kA, kD = PermutationProblem::kD;

/// Whether its elements lie in memory's sectors as they do in d's.
bool ReadsWholeSectors(const PermutationProblem& copy) {
  constexpr int64_t kSectorBytes = 32;
  return copy.modes.empty() ||
         (copy.modes[0].strides[kA] == 1 && copy.modes[0].strides[kD] == 1 &&
          copy.modes[0].extent * SizeOf(copy.type_a) >= kSectorBytes);
}

/// The copy, when it has been moved to where its first parts go.
PermutationProblem InPlace(PermutationProblem copy) {
  for (auto& mode : copy.modes) mode.strides[kA] = mode.strides[kD];
  copy.modes = Canonical(std::move(copy.modes), kD);
  copy.unary = UnaryOperator::kIdentity;
  return copy;
}

SplitTask TaskOf(const PermutationProblem& copy, int64_t part_stride,
                 bool is_second) {
  SplitTask task{.is_complex = IsComplex(copy.type_a),
                 .conjugates = copy.unary == UnaryOperator::kConj,
                 .is_second = is_second,
                 .part_stride = part_stride,
                 .elements = {}};
  task.elements.AddAll(copy.modes);
  return task;
}

}  // namespace

InputStep::InputStep(const GpuModel& model, const KernelLists& lists,
                     const InputCopy& copy, bool is_second)
    : bytes_(copy.bytes) {
  PermutationProblem source = copy.problem;
  if (copy.part_stride == 0 || !ReadsWholeSectors(source)) {
    move_ = StepOf(lists.permutation, source);
    nanoseconds_ += move_->predicted_nanoseconds();
    source = InPlace(std::move(source));
  }
  if (copy.part_stride > 0) {
    split_ = std::make_unique<const SplitTask>(
        TaskOf(source, copy.part_stride, is_second));
    nanoseconds_ += SplitNanoseconds(model, copy.problem);
  }
}

int64_t InputStep::workspace_bytes() const {
  return Workspace::BytesFor(bytes_) +
         (move_ != nullptr ? move_->workspace_bytes() : 0);
}

absl::Status InputStep::Launch(const void*& operand, Workspace& workspace,
                               CudaStream& stream) const {
  void* const copied = workspace.Take<std::byte>(bytes_);
  if (move_ != nullptr) {
    TENSORD_RETURN_IF_ERROR(
        move_->Launch({.a = operand, .d = copied}, workspace, stream));
    operand = copied;
  }
  if (split_ != nullptr) {
    TENSORD_RETURN_IF_ERROR(stream.device().Select());
    SplitTask task = *split_;
    task.a = operand;
    task.d = copied;
    TENSORD_RETURN_IF_ERROR(stream.device().Check(
        QueueSplit(task, stream.get()), "launching a splitting in parts"));
    operand = copied;
  }
  return absl::OkStatus();
}

}  // namespace tensord::core::cuda
