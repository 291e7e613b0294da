#include "core/backend/cuda/matrix/matrix_copies.h"

#include <algorithm>
#include <utility>

#include "core/backend/cuda/matrix/copy_modes.h"
#include "core/problem/heap_bytes.h"

namespace tensord::core::cuda {
namespace {

using P = FactorizationProblem;

constexpr size_t kFrom = CopyModes::kFrom, kTo = CopyModes::kTo;

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
  return LaunchCopy(*load_, a, matrices, workspace, stream);
}
absl::Status MatrixCopies::StoreLeft(const void* from, void* left,
                                     Workspace workspace,
                                     Stream& stream) const {
  return LaunchCopy(*left_, from, left, workspace, stream);
}
absl::Status MatrixCopies::StoreRight(const void* from, void* right,
                                      Workspace workspace,
                                      Stream& stream) const {
  return LaunchCopy(*right_, from, right, workspace, stream);
}
absl::Status MatrixCopies::StoreValues(const void* from, void* values,
                                       Workspace workspace,
                                       Stream& stream) const {
  if (values_ == nullptr) return absl::OkStatus();
  return LaunchCopy(*values_, from, values, workspace, stream);
}

}  // namespace tensord::core::cuda
