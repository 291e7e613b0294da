#include <utility>

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

class Cholesky final : public FactorizationKernel {
 public:
  Cholesky(const MaybeSolverLibrary& library, const KernelLists& lists)
      : library_(library), lists_(lists) {}

  absl::string_view name() const override { return "cuda.factorize.cholesky"; }

  Solved Solve(const P& problem) const override {
    TENSORD_ASSIGN_OR_RETURN(
        const SolverLibrary* const library,
        LibraryFor(problem, FactorizationMethod::kCholesky, library_));
    const MatrixShape shape(problem);
    int work_count = 0;
    if (shape.count == 1) {
      TENSORD_RETURN_IF_ERROR(VisitSolverType(problem.type, [&]<typename T>(T) {
        return Ask<T>(*library, shape, work_count);
      }));
    }
    MatrixCopies copies(problem, lists_, /*transposes=*/false);
    copies.AddLeft(lists_, {.side_stride = 1,
                            .inner_stride = shape.rows,
                            .matrix_stride = shape.rows * shape.columns});
    return std::make_unique<CholeskySolution>(problem, *library,
                                              std::move(copies), work_count);
  }

 private:
  template <typename T>
  static absl::Status Ask(const SolverLibrary& library,
                          const MatrixShape& shape, int& work_count) {
    TENSORD_ASSIGN_OR_RETURN(const SolverLibrary::Use use, library.Take());
    const int n = static_cast<int>(shape.inner);
    const cusolverStatus_t status = use.routines<T>().PotrfSize(
        use.solver(), kLower, n, nullptr, n, &work_count);
    return use.CheckCount(status, work_count, "potrf_bufferSize");
  }

  const MaybeSolverLibrary& library_;
  const KernelLists& lists_;
};

}  // namespace

std::unique_ptr<const FactorizationKernel> CreateCholesky(
    const MaybeSolverLibrary& library, const KernelLists& lists) {
  return std::make_unique<Cholesky>(library, lists);
}

}  // namespace tensord::core::cuda
