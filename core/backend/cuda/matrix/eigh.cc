#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "core/backend/cuda/matrix/factorization_kernels.h"
#include "core/backend/cuda/matrix/matrix_solution.h"
#include "core/base/status.h"
#include "core/problem/refused_matrix.h"

namespace tensord::core::cuda {
namespace {

using P = FactorizationProblem;

constexpr cusolverEigMode_t kVectors = CUSOLVER_EIG_MODE_VECTOR;
constexpr cublasFillMode_t kLower = CUBLAS_FILL_MODE_LOWER;
constexpr RoutineCost kCost = {.ns_per_column = 40e3, .flops_per_ns = 1000};
constexpr double kBatchedNanoseconds = 1e6;
constexpr RoutineCost kBatchedCost = {.flops_per_ns = 1000};

class EighSolution final : public MatrixSolution {
 public:
  EighSolution(const P& problem, const SolverLibrary& library,
               MatrixCopies copies, bool is_batched, int work_count)
      : MatrixSolution(
            problem, library, std::move(copies), /*transposes=*/false,
            is_batched
                ? kBatchedNanoseconds + NanosecondsOf(problem, kBatchedCost)
                : NanosecondsOf(problem, kCost),
            Workspace::BytesFor(MatrixShape(problem).inner *
                                MatrixShape(problem).count *
                                SizeOf(RealPartOf(problem.type))) +
                Workspace::BytesFor(work_count * SizeOf(problem.type))),
        is_batched_(is_batched),
        work_count_(work_count) {}

  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + heap_bytes();
  }

 private:
  absl::Status Decompose(Work& work) const override {
    return VisitSolverType(problem().type,
                           [&]<typename T>(T) { return Diagonalize<T>(work); });
  }

  template <typename T>
  absl::Status Diagonalize(Work& work) const {
    using Real = typename CusolverReal<T>::Type;
    const int64_t count = shape().count;
    const int n = static_cast<int>(shape().inner);
    Real* const values = work.workspace.Take<Real>(n * count);
    T* const scratch = work.workspace.Take<T>(work_count_);
    T* const a = static_cast<T*>(work.matrices.data);
    const auto& routines = work.run.use().routines<T>();
    if (is_batched_) {
      TENSORD_RETURN_IF_ERROR(
          ForEachPart(count, [&](int64_t first, int64_t part) {
            return work.run.use().Check(
                routines.SyevjBatched(
                    work.run.use().solver(), kVectors, kLower, n,
                    a + first * work.matrices.stride, n, values + first * n,
                    scratch, work_count_, work.run.info() + first,
                    work.run.use().syevj(), static_cast<int>(part)),
                "syevjBatched");
          }));
    }
    for (int64_t i = 0; !is_batched_ && i < count; ++i) {
      if (CurrentWork::ShouldStop()) return absl::OkStatus();
      TENSORD_RETURN_IF_ERROR(work.run.use().Check(
          routines.Syevd(work.run.use().solver(), kVectors, kLower, n,
                         a + i * work.matrices.stride, n, values + i * n,
                         scratch, work_count_, work.run.info() + i),
          "syevd"));
    }
    const ElementType real = RealPartOf(problem().type);
    if (work.may_be_scaled) {
      TENSORD_RETURN_IF_ERROR(
          work.run.Check(QueuePower({.matrices = {.type = real,
                                                  .data = values,
                                                  .rows = n,
                                                  .columns = 1,
                                                  .stride = n,
                                                  .count = count},
                                     .real_type = real,
                                     .multiplies = true,
                                     .facts = work.run.facts()},
                                    work.queue()),
                         "scaling eigenvalues"));
    }
    TENSORD_RETURN_IF_ERROR(copies().StoreLeft(a, work.operands.left,
                                               work.workspace, work.stream()));
    return copies().StoreValues(values, work.operands.values, work.workspace,
                                work.stream());
  }

  absl::Status Judge(const MatrixOutcome& outcome,
                     const NumberedMatrix& matrix) const override {
    if (outcome.info == 0) return absl::OkStatus();
    return DidNotConverge(problem().method, matrix);
  }

  const bool is_batched_;
  const int work_count_;
};

/// Elements of workspace that cuSOLVER takes.
template <typename T>
absl::StatusOr<int> EighWork(const SolverLibrary& library,
                             const MatrixShape& shape, bool is_batched) {
  TENSORD_ASSIGN_OR_RETURN(const SolverLibrary::Use use, library.Take());
  const auto& routines = use.routines<T>();
  const int n = static_cast<int>(shape.inner);
  int count = 0;
  if (is_batched) {
    const cusolverStatus_t status = routines.SyevjBatchedSize(
        use.solver(), kVectors, kLower, n, nullptr, n, nullptr, &count,
        use.syevj(), static_cast<int>(std::min(shape.count, kMostTogether)));
    return use.CheckedCount(status, count, "syevjBatched_bufferSize");
  }
  const cusolverStatus_t status = routines.SyevdSize(
      use.solver(), kVectors, kLower, n, nullptr, n, nullptr, &count);
  return use.CheckedCount(status, count, "syevd_bufferSize");
}

SimpleFactorization::Solved SolveEigh(const P& problem,
                                      const MaybeSolverLibrary& maybe,
                                      const KernelLists& lists,
                                      bool is_batched) {
  TENSORD_ASSIGN_OR_RETURN(
      const SolverLibrary* const library,
      LibraryFor(problem, FactorizationMethod::kEigh, maybe));
  const MatrixShape shape(problem);
  // So that workspace, two squares of the side, is counted by int.
  const int64_t most = is_batched ? kMostBatchedSide : 32000;
  if (shape.inner > most) {
    return Unimplemented("MATRIX_TOO_LARGE", "the matrix has ", shape.rows,
                         " rows, this takes up to ", most);
  }
  TENSORD_ASSIGN_OR_RETURN(const int work_count,
                           VisitSolverType(problem.type, [&]<typename T>(T) {
                             return EighWork<T>(*library, shape, is_batched);
                           }));
  MatrixCopies copies(problem, lists, /*transposes=*/false);
  copies.AddLeft(lists, {.side_stride = 1,
                         .inner_stride = shape.rows,
                         .matrix_stride = shape.rows * shape.columns});
  copies.AddValues(lists, shape.inner);
  return std::make_unique<EighSolution>(problem, *library, std::move(copies),
                                        is_batched, work_count);
}

}  // namespace

std::unique_ptr<const FactorizationKernel> CreateEigh(
    const MaybeSolverLibrary& library, const KernelLists& lists) {
  return std::make_unique<SimpleFactorization>(
      "cuda.factorize.eigh", [&library, &lists](const P& problem) {
        return SolveEigh(problem, library, lists, /*is_batched=*/false);
      });
}

std::unique_ptr<const FactorizationKernel> CreateJacobiEigh(
    const MaybeSolverLibrary& library, const KernelLists& lists) {
  return std::make_unique<SimpleFactorization>(
      "cuda.factorize.eigh_jacobi", [&library, &lists](const P& problem) {
        return SolveEigh(problem, library, lists, /*is_batched=*/true);
      });
}

}  // namespace tensord::core::cuda
