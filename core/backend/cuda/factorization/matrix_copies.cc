#include "core/backend/cuda/factorization/matrix_copies.h"

#include <algorithm>
#include <utility>

#include "core/backend/cuda/contraction/step.h"
#include "core/problem/heap_bytes.h"

namespace tensord::core::cuda {
namespace {

using P = FactorizationProblem;

constexpr size_t kFrom = PermutationProblem::kA, kTo = PermutationProblem::kD;

/// A copy between a tensor and workspace, loop by loop.
class CopyModes {
 public:
  /// `tensor` is the operand that the tensor is: kFrom or kTo.
  explicit CopyModes(size_t tensor) : tensor_(tensor) {}

  void Add(int64_t extent, int64_t of_tensor, int64_t of_workspace) {
    LoopMode<2> mode{extent, {of_workspace, of_workspace}};
    mode.strides[tensor_] = of_tensor;
    modes_.push_back(mode);
  }
  /// Loops, fastest first, that count evenly in workspace.
  template <size_t operand_count>
  void Add(const LoopModes<operand_count>& loops, size_t operand,
           int64_t stride) {
    for (const auto& loop : loops) {
      Add(loop.extent, loop.strides[operand], stride);
      stride *= loop.extent;
    }
  }

  std::unique_ptr<const PermutationSolution> Solve(const KernelLists& lists,
                                                   ElementType type) && {
    return StepOf(
        lists.permutation,
        PermutationProblem{.type_a = type,
                           .type_d = type,
                           .compute_type = DefaultComputeType(type),
                           .is_move = true,
                           .alignment_bytes = std::min<int64_t>(
                               SizeOf(type), PermutationProblem::kWidestAccess),
                           .modes = Canonical(std::move(modes_), kTo)});
  }

 private:
  const size_t tensor_;
  LoopModes<2> modes_;
};

absl::Status Launch(const PermutationSolution& copy, const void* from, void* to,
                    Workspace& workspace, Stream& stream) {
  return copy.Launch({.a = from, .d = to}, workspace, stream);
}

}  // namespace

MatrixCopies::MatrixCopies(const P& problem, const KernelLists& lists,
                           bool transposes)
    : problem_(problem) {
  const int64_t rows = ElementCount(problem.rows);
  const int64_t columns = ElementCount(problem.columns);
  CopyModes modes(kFrom);
  modes.Add(problem.rows, P::kA, transposes ? columns : 1);
  modes.Add(problem.columns, P::kA, transposes ? 1 : rows);
  modes.Add(problem.batch, P::kBatchA, rows * columns);
  load_ = std::move(modes).Solve(lists, problem.type);
}

void MatrixCopies::AddLeft(const KernelLists& lists, const FactorPlace& place) {
  CopyModes modes(kTo);
  modes.Add(problem_.rows, P::kFactor, place.side_stride);
  modes.Add(problem_.inner_extent, problem_.inner_stride_left,
            place.inner_stride);
  modes.Add(problem_.batch, P::kBatchLeft, place.matrix_stride);
  left_ = std::move(modes).Solve(lists, problem_.type);
}

void MatrixCopies::AddRight(const KernelLists& lists,
                            const FactorPlace& place) {
  CopyModes modes(kTo);
  modes.Add(problem_.columns, P::kFactor, place.side_stride);
  modes.Add(problem_.inner_extent, problem_.inner_stride_right,
            place.inner_stride);
  modes.Add(problem_.batch, P::kBatchRight, place.matrix_stride);
  right_ = std::move(modes).Solve(lists, problem_.type);
}

void MatrixCopies::AddValues(const KernelLists& lists, int64_t count) {
  if (!problem_.has_values) return;
  CopyModes modes(kTo);
  modes.Add(problem_.inner_extent, problem_.inner_stride_values, 1);
  modes.Add(problem_.batch, P::kBatchValues, count);
  values_ = std::move(modes).Solve(lists, RealPartOf(problem_.type));
}

double MatrixCopies::nanoseconds() const {
  double sum = 0;
  for (const Copy* copy : {&load_, &left_, &right_, &values_}) {
    if (*copy != nullptr) sum += (*copy)->predicted_nanoseconds();
  }
  return sum;
}

int64_t MatrixCopies::workspace_bytes() const {
  int64_t most = 0;
  for (const Copy* copy : {&load_, &left_, &right_, &values_}) {
    if (*copy != nullptr) most = std::max(most, (*copy)->workspace_bytes());
  }
  return most;
}

int64_t MatrixCopies::heap_bytes() const {
  return HeapBytes(problem_) + HeapBytes(load_) + HeapBytes(left_) +
         HeapBytes(right_) + HeapBytes(values_);
}

absl::Status MatrixCopies::Load(const void* a, void* matrices,
                                Workspace workspace, Stream& stream) const {
  return Launch(*load_, a, matrices, workspace, stream);
}
absl::Status MatrixCopies::StoreLeft(const void* from, void* left,
                                     Workspace workspace,
                                     Stream& stream) const {
  return Launch(*left_, from, left, workspace, stream);
}
absl::Status MatrixCopies::StoreRight(const void* from, void* right,
                                      Workspace workspace,
                                      Stream& stream) const {
  return Launch(*right_, from, right, workspace, stream);
}
absl::Status MatrixCopies::StoreValues(const void* from, void* values,
                                       Workspace workspace,
                                       Stream& stream) const {
  if (values_ == nullptr) return absl::OkStatus();
  return Launch(*values_, from, values, workspace, stream);
}

}  // namespace tensord::core::cuda
