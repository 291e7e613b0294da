#include "core/backend/cuda/matrix/matrix_solution.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/device/interruption.h"

namespace tensord::core::cuda {
namespace {

using P = FactorizationProblem;

int64_t MatrixBytes(const P& problem) {
  const MatrixShape shape(problem);
  return shape.rows * shape.columns * shape.count * SizeOf(problem.type);
}

}  // namespace

MatrixShape::MatrixShape(const P& problem)
    : rows(ElementCount(problem.rows)),
      columns(ElementCount(problem.columns)),
      inner(std::min(rows, columns)),
      count(ElementCount(problem.batch)) {}

absl::StatusOr<const SolverLibrary*> LibraryFor(
    const P& problem, FactorizationMethod method,
    const MaybeSolverLibrary& library) {
  if (problem.method != method) {
    return Unimplemented("OTHER_METHOD", NameOf(problem.method),
                         " is wanted, this is ", NameOf(method));
  }
  TENSORD_RETURN_IF_ERROR(library.status());
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  constexpr int64_t kMostElements = int64_t{1} << 40;  // of all
  const MatrixShape shape(problem);
  if (shape.rows <= kMost / shape.columns && shape.count <= kMost &&
      shape.rows * shape.columns <= kMostElements / shape.count) {
    return library->get();
  }
  return Unimplemented(
      "MATRIX_TOO_LARGE", shape.count, " matrices of ", shape.rows, " x ",
      shape.columns,
      " elements, cuSOLVER takes sides, matrices and elements of "
      "one up to 2^31, and of all up to 2^40");
}

double NanosecondsOf(const P& problem, const RoutineCost& cost) {
  const MatrixShape shape(problem);
  const auto count = static_cast<double>(shape.count);
  const bool is_single = RealPartOf(problem.type) == ElementType::kFloat32;
  return count * (cost.ns_per_matrix +
                  cost.ns_per_column * static_cast<double>(shape.inner)) +
         FlopCount(problem) / cost.flops_per_ns / (is_single ? 2 : 1);
}

MatrixSolution::MatrixSolution(const P& problem, const SolverLibrary& library,
                               MatrixCopies copies, bool transposes,
                               double nanoseconds, int64_t own_bytes)
    : Solution(nanoseconds + copies.nanoseconds(),
               MatrixRun::WorkspaceBytes(MatrixShape(problem).count) +
                   Workspace::BytesFor(MatrixBytes(problem)) + own_bytes +
                   copies.workspace_bytes()),
      problem_(problem),
      shape_(problem),
      library_(library),
      copies_(std::move(copies)),
      transposes_(transposes) {}

std::string MatrixSolution::decision() const {
  const std::string each = absl::StrCat(shape_.rows, " x ", shape_.columns);
  if (shape_.count == 1) {
    return absl::StrCat(NameOf(problem_.method), " of a matrix of ", each,
                        ", copied first");
  }
  return absl::StrCat(NameOf(problem_.method), " of ", shape_.count,
                      " matrices of ", each, ", copied first");
}

absl::Status MatrixSolution::Launch(const FactorizationOperands& operands,
                                    Workspace& workspace,
                                    Stream& stream) const {
  TENSORD_ASSIGN_OR_RETURN(
      MatrixRun run,
      MatrixRun::Begin(library_, shape_.count, workspace, AsCuda(stream)));
  Work work{
      .operands = operands,
      .workspace = workspace,
      .run = run,
      .matrices = {.type = problem_.type,
                   .data = workspace.Take<std::byte>(MatrixBytes(problem_)),
                   .rows = transposes_ ? shape_.columns : shape_.rows,
                   .columns = transposes_ ? shape_.rows : shape_.columns,
                   .stride = shape_.rows * shape_.columns,
                   .count = shape_.count}};
  TENSORD_RETURN_IF_ERROR(
      copies_.Load(operands.a, work.matrices.data, workspace, stream));
  TENSORD_RETURN_IF_ERROR(LookAtMatrices(work));
  if (CurrentWork::ShouldStop()) return absl::OkStatus();
  TENSORD_RETURN_IF_ERROR(QueueLong(predicted_nanoseconds(),
                                    work.stream().device(),
                                    [&] { return Decompose(work); }));
  TENSORD_ASSIGN_OR_RETURN(const std::vector<MatrixOutcome> all, Await(work));
  int64_t kept = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    TENSORD_RETURN_IF_ERROR(Judge(all[i], Named(i)));
    kept = std::max<int64_t>(kept, all[i].note);
  }
  const bool is_svd = problem_.method == FactorizationMethod::kSvd;
  if (is_svd && operands.kept != nullptr) *operands.kept = kept;
  return absl::OkStatus();
}

absl::Status MatrixSolution::LookAtMatrices(Work& work) const {
  TENSORD_RETURN_IF_ERROR(work.run.Check(
      QueueLook({.matrices = work.matrices,
                 .part = PairsRows(problem_.method) ? MatrixPart::kLower
                                                    : MatrixPart::kAll,
                 .counts_rows = transposes_,
                 .facts = work.run.facts()},
                work.queue()),
      "looking at matrices"));
  if (PairsRows(problem_.method)) {
    TENSORD_RETURN_IF_ERROR(work.run.Check(
        QueueHermitian(work.matrices, work.queue()), "completing matrices"));
  }
  const ElementType real = RealPartOf(problem_.type);
  switch (problem_.method) {
    case FactorizationMethod::kCholesky: return absl::OkStatus();
    case FactorizationMethod::kSvd:
    case FactorizationMethod::kEigh: {
      // Algorithms that iterate need not end on a matrix that is not finite.
      TENSORD_ASSIGN_OR_RETURN(const std::vector<MatrixOutcome> all,
                               Await(work));
      work.may_be_scaled =
          std::ranges::any_of(all, [&](const MatrixOutcome& each) {
            return PowerFor(each.facts, real) != 0;
          });
      break;
    }
    default: work.may_be_scaled = true;  // which nobody waits to know
  }
  if (!work.may_be_scaled) return absl::OkStatus();
  return work.run.Check(QueuePower({.matrices = work.matrices,
                                    .real_type = real,
                                    .facts = work.run.facts()},
                                   work.queue()),
                        "scaling matrices");
}

absl::StatusOr<std::vector<MatrixOutcome>> MatrixSolution::Await(
    Work& work) const {
  TENSORD_ASSIGN_OR_RETURN(std::vector<MatrixOutcome> all, work.run.Await());
  if (problem_.method == FactorizationMethod::kQr) return all;
  for (size_t i = 0; i < all.size(); ++i) {
    const int left = all[i].facts.from_not_finite;
    if (left == 0) continue;
    return NotFinite(problem_.method, Named(i), shape_.columns - left);
  }
  return all;
}

}  // namespace tensord::core::cuda
