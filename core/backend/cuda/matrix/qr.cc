#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "core/backend/cuda/matrix/factorization_kernels.h"
#include "core/backend/cuda/matrix/matrix_solution.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

using P = FactorizationProblem;

/// A guess: not fitted to measurements yet. So are those of the other kernels.
constexpr RoutineCost kCost = {
    .ns_per_matrix = 50e3, .ns_per_column = 8e3, .flops_per_ns = 2000};

class QrSolution final : public MatrixSolution {
 public:
  /// `work_count`: elements of workspace that cuSOLVER takes.
  QrSolution(const P& problem, const SolverLibrary& library,
             MatrixCopies copies, int work_count)
      : MatrixSolution(problem, library, std::move(copies),
                       /*transposes=*/false, NanosecondsOf(problem, kCost),
                       OwnBytes(problem, work_count)),
        work_count_(work_count) {}

  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + heap_bytes();
  }

 private:
  static int64_t OwnBytes(const P& problem, int work_count) {
    const MatrixShape shape(problem);
    const int64_t element = SizeOf(problem.type);
    const int64_t diagonals = shape.inner * shape.count * element;
    return Workspace::BytesFor(diagonals * shape.columns) +
           2 * Workspace::BytesFor(diagonals) +
           Workspace::BytesFor(work_count * element);
  }

  absl::Status Decompose(Work& work) const override {
    return VisitSolverType(problem().type,
                           [&]<typename T>(T) { return Factor<T>(work); });
  }

  template <typename T>
  absl::Status Factor(Work& work) const {
    const auto [rows, columns, inner, count] = shape();
    T* const r = work.workspace.Take<T>(inner * columns * count);
    T* const phases = work.workspace.Take<T>(inner * count);
    T* const tau = work.workspace.Take<T>(inner * count);
    T* const scratch = work.workspace.Take<T>(work_count_);
    T* const a = static_cast<T*>(work.matrices.data);
    const auto& routines = work.run.use().routines<T>();
    const int m = static_cast<int>(rows), n = static_cast<int>(columns),
              k = static_cast<int>(inner);
    for (int64_t i = 0; i < count && !CurrentWork::ShouldStop(); ++i) {
      TENSORD_RETURN_IF_ERROR(work.run.use().Check(
          routines.Geqrf(work.run.use().solver(), m, n,
                         a + i * work.matrices.stride, m, tau + i * inner,
                         scratch, work_count_, work.run.info() + i),
          "geqrf"));
    }
    const Matrices upper = {.type = problem().type,
                            .data = r,
                            .rows = inner,
                            .columns = columns,
                            .stride = inner * columns,
                            .count = count};
    TENSORD_RETURN_IF_ERROR(work.run.Check(
        QueueUpper({.matrices = work.matrices, .r = upper, .phases = phases},
                   work.queue()),
        "taking r"));
    TENSORD_RETURN_IF_ERROR(
        work.run.Check(QueuePower({.matrices = upper,
                                   .real_type = RealPartOf(problem().type),
                                   .multiplies = true,
                                   .facts = work.run.facts()},
                                  work.queue()),
                       "scaling r"));
    for (int64_t i = 0; i < count && !CurrentWork::ShouldStop(); ++i) {
      TENSORD_RETURN_IF_ERROR(work.run.use().Check(
          routines.Orgqr(work.run.use().solver(), m, k, k,
                         a + i * work.matrices.stride, m, tau + i * inner,
                         scratch, work_count_, work.run.info() + i),
          "orgqr"));
    }
    TENSORD_RETURN_IF_ERROR(
        work.run.Check(QueueFactors({.matrices = work.matrices,
                                     .factors = phases,
                                     .factor_count = inner},
                                    work.queue()),
                       "turning q"));
    TENSORD_RETURN_IF_ERROR(copies().StoreLeft(a, work.operands.left,
                                               work.workspace, work.stream()));
    return copies().StoreRight(r, work.operands.right, work.workspace,
                               work.stream());
  }

  absl::Status Judge(const MatrixOutcome&,
                     const NumberedMatrix&) const override {
    return absl::OkStatus();
  }

  const int work_count_;
};

/// Elements of workspace that cuSOLVER takes.
template <typename T>
absl::StatusOr<int> QrWork(const SolverLibrary& library,
                           const MatrixShape& shape) {
  TENSORD_ASSIGN_OR_RETURN(const SolverLibrary::Use use, library.Take());
  const int m = static_cast<int>(shape.rows),
            n = static_cast<int>(shape.columns),
            k = static_cast<int>(shape.inner);
  int of_factor = 0, of_q = 0;
  const cusolverStatus_t factor =
      use.routines<T>().GeqrfSize(use.solver(), m, n, nullptr, m, &of_factor);
  TENSORD_ASSIGN_OR_RETURN(
      const int for_factor,
      use.CheckedCount(factor, of_factor, "geqrf_bufferSize"));
  const cusolverStatus_t q = use.routines<T>().OrgqrSize(
      use.solver(), m, k, k, nullptr, m, nullptr, &of_q);
  TENSORD_ASSIGN_OR_RETURN(const int for_q,
                           use.CheckedCount(q, of_q, "orgqr_bufferSize"));
  return std::max(for_factor, for_q);
}

SimpleFactorization::Solved SolveQr(const P& problem,
                                    const MaybeSolverLibrary& maybe,
                                    const KernelLists& lists) {
  TENSORD_ASSIGN_OR_RETURN(
      const SolverLibrary* const library,
      LibraryFor(problem, FactorizationMethod::kQr, maybe));
  const MatrixShape shape(problem);
  TENSORD_ASSIGN_OR_RETURN(const int work_count,
                           VisitSolverType(problem.type, [&]<typename T>(T) {
                             return QrWork<T>(*library, shape);
                           }));
  MatrixCopies copies(problem, lists, /*transposes=*/false);
  copies.AddLeft(lists, {.side_stride = 1,
                         .inner_stride = shape.rows,
                         .matrix_stride = shape.rows * shape.columns});
  copies.AddRight(lists, {.side_stride = shape.inner,
                          .inner_stride = 1,
                          .matrix_stride = shape.inner * shape.columns});
  return std::make_unique<QrSolution>(problem, *library, std::move(copies),
                                      work_count);
}

}  // namespace

std::unique_ptr<const FactorizationKernel> CreateQr(
    const MaybeSolverLibrary& library, const KernelLists& lists) {
  return std::make_unique<SimpleFactorization>(
      "cuda.factorize.qr", [&library, &lists](const P& problem) {
        return SolveQr(problem, library, lists);
      });
}

}  // namespace tensord::core::cuda
