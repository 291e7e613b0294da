#include <utility>

#include "absl/status/statusor.h"
#include "core/backend/cuda/matrix/factorization_kernels.h"
#include "core/backend/cuda/matrix/matrix_solution.h"
#include "core/base/status.h"
#include "core/problem/refused_matrix.h"

namespace tensord::core::cuda {
namespace {

using P = FactorizationProblem;

constexpr cublasFillMode_t kLower = CUBLAS_FILL_MODE_LOWER;
constexpr RoutineCost kCost = {
    .ns_per_matrix = 20e3, .ns_per_column = 2e3, .flops_per_ns = 3000};
constexpr double kBatchedNanoseconds = 100e3;
constexpr RoutineCost kBatchedCost = {.flops_per_ns = 500};

class CholeskySolution final : public MatrixSolution {
 public:
  CholeskySolution(const P& problem, const SolverLibrary& library,
                   MatrixCopies copies, int work_count)
      : MatrixSolution(
            problem, library, std::move(copies), /*transposes=*/false,
            MatrixShape(problem).count > 1
                ? kBatchedNanoseconds + NanosecondsOf(problem, kBatchedCost)
                : NanosecondsOf(problem, kCost),
            Workspace::BytesFor(MatrixShape(problem).count *
                                static_cast<int64_t>(sizeof(void*))) +
                Workspace::BytesFor(work_count * SizeOf(problem.type))),
        work_count_(work_count) {}

  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + heap_bytes();
  }

 private:
  absl::Status Decompose(Work& work) const override {
    return VisitSolverType(problem().type,
                           [&]<typename T>(T) { return Factor<T>(work); });
  }

  template <typename T>
  absl::Status Factor(Work& work) const {
    const int n = static_cast<int>(shape().inner);
    const Matrices& matrices = work.matrices;
    T** const addresses = work.workspace.Take<T*>(shape().count);
    T* const scratch = work.workspace.Take<T>(work_count_);
    T* const a = static_cast<T*>(matrices.data);
    const auto& routines = work.run.use().routines<T>();
    if (shape().count == 1) {
      TENSORD_RETURN_IF_ERROR(work.run.use().Check(
          routines.Potrf(work.run.use().solver(), kLower, n, a, n, scratch,
                         work_count_, work.run.info()),
          "potrf"));
    } else {
      TENSORD_RETURN_IF_ERROR(work.run.Check(
          QueueAddresses(
              {.addresses = reinterpret_cast<void**>(addresses),
               .first = a,
               .bytes = matrices.stride * static_cast<int64_t>(sizeof(T)),
               .count = matrices.count},
              work.queue()),
          "writing addresses"));
      TENSORD_RETURN_IF_ERROR(
          ForEachPart(matrices.count, [&](int64_t first, int64_t count) {
            return work.run.use().Check(
                routines.PotrfBatched(
                    work.run.use().solver(), kLower, n, addresses + first, n,
                    work.run.info() + first, static_cast<int>(count)),
                "potrfBatched");
          }));
    }
    // The library may overlook NaN.
    TENSORD_RETURN_IF_ERROR(
        work.run.Check(QueueDiagonal({.matrices = matrices,
                                      .wants_positive = true,
                                      .from_bad = work.run.notes()},
                                     work.queue()),
                       "looking at diagonals"));
    TENSORD_RETURN_IF_ERROR(work.run.Check(
        QueueTriangle({.matrices = matrices, .has_real_diagonal = true},
                      work.queue()),
        "clearing l"));
    return copies().StoreLeft(a, work.operands.left, work.workspace,
                              work.stream());
  }

  absl::Status Judge(const MatrixOutcome& outcome,
                     const NumberedMatrix& matrix) const override {
    if (outcome.info > 0) return NotPositiveDefinite(matrix, outcome.info);
    if (outcome.note > 0) {
      return NotPositiveDefinite(matrix, matrix.rows - outcome.note + 1);
    }
    return absl::OkStatus();
  }

  const int work_count_;
};

/// Elements of workspace that cuSOLVER takes of one matrix.
template <typename T>
absl::StatusOr<int> CholeskyWork(const SolverLibrary& library,
                                 const MatrixShape& shape) {
  TENSORD_ASSIGN_OR_RETURN(const SolverLibrary::Use use, library.Take());
  const int n = static_cast<int>(shape.inner);
  int count = 0;
  const cusolverStatus_t status =
      use.routines<T>().PotrfSize(use.solver(), kLower, n, nullptr, n, &count);
  return use.CheckedCount(status, count, "potrf_bufferSize");
}

SimpleFactorization::Solved SolveCholesky(const P& problem,
                                          const MaybeSolverLibrary& maybe,
                                          const KernelLists& lists) {
  TENSORD_ASSIGN_OR_RETURN(
      const SolverLibrary* const library,
      LibraryFor(problem, FactorizationMethod::kCholesky, maybe));
  const MatrixShape shape(problem);
  absl::StatusOr<int> work_count = 0;  // of batches
  if (shape.count == 1) {
    work_count = VisitSolverType(problem.type, [&]<typename T>(T) {
      return CholeskyWork<T>(*library, shape);
    });
  }
  TENSORD_RETURN_IF_ERROR(work_count.status());
  MatrixCopies copies(problem, lists, /*transposes=*/false);
  copies.AddLeft(lists, {.side_stride = 1,
                         .inner_stride = shape.rows,
                         .matrix_stride = shape.rows * shape.columns});
  return std::make_unique<CholeskySolution>(problem, *library,
                                            std::move(copies), *work_count);
}

}  // namespace

std::unique_ptr<const FactorizationKernel> CreateCholesky(
    const MaybeSolverLibrary& library, const KernelLists& lists) {
  return std::make_unique<SimpleFactorization>(
      "cuda.factorize.cholesky", [&library, &lists](const P& problem) {
        return SolveCholesky(problem, library, lists);
      });
}

}  // namespace tensord::core::cuda
