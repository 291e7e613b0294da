#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "core/backend/cuda/matrix/factorization_kernels.h"
#include "core/backend/cuda/matrix/matrix_solution.h"
#include "core/base/status.h"
#include "core/problem/refused_matrix.h"

namespace tensord::core::cuda {
namespace {

using P = FactorizationProblem;
using Absorb = Truncation::Absorb;

constexpr cusolverEigMode_t kVectors = CUSOLVER_EIG_MODE_VECTOR;
constexpr RoutineCost kCost = {.ns_per_column = 80e3, .flops_per_ns = 60};
constexpr RoutineCost kJacobiCost = {.ns_per_column = 20e3,
                                     .flops_per_ns = 150};
constexpr double kBatchedNanoseconds = 1e6;
constexpr RoutineCost kBatchedCost = {.flops_per_ns = 500};

enum class Way { kQr, kJacobi, kBatchedJacobi };

double PredictedFor(Way way, const P& problem) {
  // Beyond, Jacobi's method may well not converge, and costs both then.
  constexpr int64_t kLarge = 1024;
  switch (way) {
    case Way::kQr: return NanosecondsOf(problem, kCost);
    case Way::kJacobi:
      return NanosecondsOf(problem, kJacobiCost) +
             (MatrixShape(problem).inner > kLarge
                  ? NanosecondsOf(problem, kCost)
                  : 0);
    default: return kBatchedNanoseconds + NanosecondsOf(problem, kBatchedCost);
  }
}

/// What becomes of m x n matrices: u of m rows, and v, by its rows where it is
/// adjoint and by its columns otherwise.
struct SvdShape {
  bool transposes;  // the tensors' matrices
  int m, n, inner;
  int u_columns;
  int v_rows, v_columns;
  int64_t count;

  SvdShape(const MatrixShape& shape, Way way)
      : transposes(way != Way::kBatchedJacobi && shape.rows < shape.columns),
        m(static_cast<int>(transposes ? shape.columns : shape.rows)),
        n(static_cast<int>(transposes ? shape.rows : shape.columns)),
        inner(static_cast<int>(shape.inner)),
        u_columns(way == Way::kBatchedJacobi ? m : inner),
        v_rows(way == Way::kQr ? inner : n),
        v_columns(way == Way::kJacobi ? inner : n),
        count(shape.count) {}

  int64_t u_stride() const { return int64_t{m} * u_columns; }
  int64_t v_stride() const { return int64_t{v_rows} * v_columns; }
  bool has_adjoint_v(Way way) const { return way == Way::kQr; }

  /// Workspace of Decompose().
  int64_t Bytes(ElementType type, int work_count) const {
    const int64_t element = SizeOf(type);
    return Workspace::BytesFor(u_stride() * count * element) +
           Workspace::BytesFor(v_stride() * count * element) +
           Workspace::BytesFor(inner * count * SizeOf(RealPartOf(type))) +
           2 * Workspace::BytesFor(inner * count * element) +
           Workspace::BytesFor(work_count * element);
  }
};

MatrixCopies CopiesFor(const P& problem, const KernelLists& lists,
                       const SvdShape& svd, Way way) {
  const FactorPlace of_u = {
      .side_stride = 1, .inner_stride = svd.m, .matrix_stride = svd.u_stride()};
  const FactorPlace of_v = svd.has_adjoint_v(way)
                               ? FactorPlace{.side_stride = svd.v_rows,
                                             .inner_stride = 1,
                                             .matrix_stride = svd.v_stride()}
                               : FactorPlace{.side_stride = 1,
                                             .inner_stride = svd.v_rows,
                                             .matrix_stride = svd.v_stride()};
  MatrixCopies copies(problem, lists, svd.transposes);
  // Transposed, a = u s v^H is v* s u^T: left is what lies by v's rows.
  copies.AddLeft(lists, svd.transposes ? of_v : of_u);
  copies.AddRight(lists, svd.transposes ? of_u : of_v);
  copies.AddValues(lists, svd.inner);
  return copies;
}

class SvdSolution final : public MatrixSolution {
 public:
  /// `otherwise` may be null: what is done when this does not converge.
  SvdSolution(const P& problem, const SolverLibrary& library,
              MatrixCopies copies, Way way, int work_count,
              std::unique_ptr<const FactorizationSolution> otherwise)
      : SvdSolution(problem, library, std::move(copies), way,
                    SvdShape(MatrixShape(problem), way), work_count,
                    std::move(otherwise)) {}

  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + heap_bytes() + HeapBytes(otherwise_);
  }
  absl::Status Launch(const FactorizationOperands& operands,
                      Workspace& workspace, Stream& stream) const override {
    Workspace again = workspace;
    const absl::Status status =
        MatrixSolution::Launch(operands, workspace, stream);
    if (otherwise_ == nullptr || ReasonOf(status) != "DID_NOT_CONVERGE") {
      return status;
    }
    return otherwise_->Launch(operands, again, stream);
  }

 private:
  SvdSolution(const P& problem, const SolverLibrary& library,
              MatrixCopies copies, Way way, const SvdShape& svd, int work_count,
              std::unique_ptr<const FactorizationSolution> otherwise)
      : MatrixSolution(
            problem, library, std::move(copies), svd.transposes,
            PredictedFor(way, problem),
            std::max(svd.Bytes(problem.type, work_count),
                     otherwise == nullptr ? 0 : otherwise->workspace_bytes())),
        way_(way),
        svd_(svd),
        work_count_(work_count),
        otherwise_(std::move(otherwise)) {}

  template <typename T>
  struct Room {
    T* u;
    T* v;
    typename CusolverReal<T>::Type* values;
    T* left;   // what columns of the left factor are multiplied by
    T* right;  // and rows of the right one
    T* scratch;
  };

  absl::Status Decompose(Work& work) const override {
    return VisitSolverType(problem().type, [&]<typename T>(T) {
      const int64_t values = svd_.inner * svd_.count;
      Workspace& workspace = work.workspace;
      Room<T> room;
      room.u = workspace.Take<T>(svd_.u_stride() * svd_.count);
      room.v = workspace.Take<T>(svd_.v_stride() * svd_.count);
      room.values = workspace.Take<typename CusolverReal<T>::Type>(values);
      room.left = workspace.Take<T>(values);
      room.right = workspace.Take<T>(values);
      room.scratch = workspace.Take<T>(work_count_);
      TENSORD_RETURN_IF_ERROR(Call(work, room));
      return Store(work, room);
    });
  }

  template <typename T>
  absl::Status Call(Work& work, const Room<T>& room) const {
    const auto& routines = work.run.use().routines<T>();
    const cusolverDnHandle_t solver = work.run.use().solver();
    const auto [m, n] = std::pair(svd_.m, svd_.n);
    T* const a = static_cast<T*>(work.matrices.data);
    if (way_ == Way::kBatchedJacobi) {
      return ForEachPart(svd_.count, [&](int64_t first, int64_t count) {
        return work.run.use().Check(
            routines.GesvdjBatched(
                solver, kVectors, svd_.m, svd_.n,
                a + first * work.matrices.stride, svd_.m,
                room.values + first * svd_.inner,
                room.u + first * svd_.u_stride(), svd_.m,
                room.v + first * svd_.v_stride(), svd_.n, room.scratch,
                work_count_, work.run.info() + first, work.run.use().gesvdj(),
                static_cast<int>(count)),
            "gesvdjBatched");
      });
    }
    for (int64_t i = 0; i < svd_.count; ++i) {
      if (CurrentWork::ShouldStop()) return absl::OkStatus();
      T* const own = a + i * work.matrices.stride;
      T* const u = room.u + i * svd_.u_stride();
      T* const v = room.v + i * svd_.v_stride();
      auto* const values = room.values + i * svd_.inner;
      TENSORD_RETURN_IF_ERROR(
          way_ == Way::kQr
              ? work.run.use().Check(
                    routines.Gesvd(solver, 'S', 'S', m, n, own, m, values, u, m,
                                   v, svd_.v_rows, room.scratch, work_count_,
                                   nullptr, work.run.info() + i),
                    "gesvd")
              : work.run.use().Check(
                    routines.Gesvdj(solver, kVectors, /*econ=*/1, m, n, own, m,
                                    values, u, m, v, n, room.scratch,
                                    work_count_, work.run.info() + i,
                                    work.run.use().gesvdj()),
                    "gesvdj"));
    }
    return absl::OkStatus();
  }

  /// Cuts values off and brings the results to their places.
  template <typename T>
  absl::Status Store(Work& work, const Room<T>& room) const {
    const FactorizationOperands& operands = work.operands;
    const Truncation& truncation = operands.truncation;
    const bool is_both = truncation.absorb == Absorb::kBoth;
    const cudaStream_t stream = work.queue();
    const ElementType type = problem().type, real = RealPartOf(type);
    if (work.may_be_scaled) {
      TENSORD_RETURN_IF_ERROR(
          work.run.Check(QueuePower({.matrices = {.type = real,
                                                  .data = room.values,
                                                  .rows = svd_.inner,
                                                  .columns = 1,
                                                  .stride = svd_.inner,
                                                  .count = svd_.count},
                                     .real_type = real,
                                     .multiplies = true,
                                     .facts = work.run.facts()},
                                    stream),
                         "scaling singular values"));
    }
    TENSORD_RETURN_IF_ERROR(work.run.Check(
        QueueCut(
            {.type = type,
             .values = room.values,
             .left = room.left,
             .right = room.right,
             .kept = work.run.notes(),
             .count = svd_.count,
             .value_count = svd_.inner,
             .most = problem().inner_extent,
             .cutoff = truncation.cutoff,
             .relative_cutoff = truncation.relative_cutoff,
             .discarded_squares = truncation.discarded_squares,
             .relative_discarded_squares =
                 truncation.relative_discarded_squares,
             .absorbs_left = is_both || truncation.absorb == Absorb::kLeft,
             .absorbs_right = is_both || truncation.absorb == Absorb::kRight,
             .renormalizes = truncation.renormalizes},
            stream),
        "cutting values off"));
    // By a rank alone, what is cut off is not copied.
    const bool keeps_all = truncation == Truncation();
    if (!keeps_all) {
      TENSORD_RETURN_IF_ERROR(work.run.Check(
          QueueFactors({.matrices = {.type = type,
                                     .data = room.u,
                                     .rows = svd_.m,
                                     .columns = svd_.u_columns,
                                     .stride = svd_.u_stride(),
                                     .count = svd_.count},
                        .factors = svd_.transposes ? room.right : room.left,
                        .factor_count = svd_.inner},
                       stream),
          "scaling u"));
    }
    if (!keeps_all || (IsComplex(type) && !svd_.has_adjoint_v(way_))) {
      TENSORD_RETURN_IF_ERROR(work.run.Check(
          QueueFactors({.matrices = {.type = type,
                                     .data = room.v,
                                     .rows = svd_.v_rows,
                                     .columns = svd_.v_columns,
                                     .stride = svd_.v_stride(),
                                     .count = svd_.count},
                        .factors = svd_.transposes ? room.left : room.right,
                        .factor_count = svd_.inner,
                        .of_rows = svd_.has_adjoint_v(way_),
                        .conjugates = !svd_.has_adjoint_v(way_)},
                       stream),
          "scaling v"));
    }
    const void* const left = svd_.transposes ? room.v : room.u;
    const void* const right = svd_.transposes ? room.u : room.v;
    TENSORD_RETURN_IF_ERROR(
        copies().StoreLeft(left, operands.left, work.workspace, work.stream()));
    TENSORD_RETURN_IF_ERROR(copies().StoreRight(right, operands.right,
                                                work.workspace, work.stream()));
    return copies().StoreValues(room.values, operands.values, work.workspace,
                                work.stream());
  }

  absl::Status Judge(const MatrixOutcome& outcome,
                     const NumberedMatrix& matrix) const override {
    if (outcome.info == 0) return absl::OkStatus();
    return DidNotConverge(problem().method, matrix);
  }

  const Way way_;
  const SvdShape svd_;
  const int work_count_;
  const std::unique_ptr<const FactorizationSolution> otherwise_;
};

/// Elements of workspace that cuSOLVER takes.
template <typename T>
absl::StatusOr<int> SvdWork(const SolverLibrary& library, Way way,
                            const SvdShape& svd) {
  TENSORD_ASSIGN_OR_RETURN(const SolverLibrary::Use use, library.Take());
  const auto& routines = use.routines<T>();
  const auto [m, n] = std::pair(svd.m, svd.n);
  int count = 0;
  cusolverStatus_t status;
  switch (way) {
    case Way::kQr:
      status = routines.GesvdSize(use.solver(), m, n, &count);
      break;
    case Way::kJacobi:
      status = routines.GesvdjSize(use.solver(), kVectors, /*econ=*/1, m, n,
                                   nullptr, m, nullptr, nullptr, m, nullptr, n,
                                   &count, use.gesvdj());
      break;
    default:
      status = routines.GesvdjBatchedSize(
          use.solver(), kVectors, m, n, nullptr, m, nullptr, nullptr, m,
          nullptr, n, &count, use.gesvdj(),
          static_cast<int>(std::min(svd.count, kMostTogether)));
  }
  return use.CheckedCount(status, count, "gesvd_bufferSize");
}

SimpleFactorization::Solved SolveSvd(
    Way way, const P& problem, const MaybeSolverLibrary& maybe,
    const KernelLists& lists,
    std::unique_ptr<const FactorizationSolution> otherwise = nullptr) {
  TENSORD_ASSIGN_OR_RETURN(
      const SolverLibrary* const library,
      LibraryFor(problem, FactorizationMethod::kSvd, maybe));
  const SvdShape svd(MatrixShape(problem), way);
  // So that workspace is counted by int: squares of the longer side, and six of
  // the shorter one.
  constexpr int kMostLong = 46000, kMostShort = 18000;
  if (way == Way::kQr && (svd.m > kMostLong || svd.n > kMostShort)) {
    return Unimplemented("MATRIX_TOO_LARGE", "the matrix has ", svd.m, " x ",
                         svd.n, " elements, this takes up to ", kMostLong,
                         " x ", kMostShort);
  }
  TENSORD_ASSIGN_OR_RETURN(const int work_count,
                           VisitSolverType(problem.type, [&]<typename T>(T) {
                             return SvdWork<T>(*library, way, svd);
                           }));
  return std::make_unique<SvdSolution>(problem, *library,
                                       CopiesFor(problem, lists, svd, way), way,
                                       work_count, std::move(otherwise));
}

SimpleFactorization::Solved SolveJacobiSvd(const P& problem,
                                           const MaybeSolverLibrary& library,
                                           const KernelLists& lists) {
  const MatrixShape shape(problem);
  std::unique_ptr<const FactorizationSolution> otherwise;
  // Its workspace is the square of the longer side: too much of thin ones.
  constexpr int64_t kMostTimes = 32;
  const int64_t bytes =
      shape.rows * shape.columns * shape.count * SizeOf(problem.type);
  auto by_qr = SolveSvd(Way::kQr, problem, library, lists);
  if (by_qr.ok() && (*by_qr)->workspace_bytes() <=
                        std::max(kMostTimes * bytes, int64_t{64} << 20)) {
    otherwise = *std::move(by_qr);
  }
  const bool is_short =
      shape.rows <= kMostBatchedSide && shape.columns <= kMostBatchedSide;
  return SolveSvd(is_short ? Way::kBatchedJacobi : Way::kJacobi, problem,
                  library, lists, std::move(otherwise));
}

}  // namespace

std::unique_ptr<const FactorizationKernel> CreateSvd(
    const MaybeSolverLibrary& library, const KernelLists& lists) {
  return std::make_unique<SimpleFactorization>(
      "cuda.factorize.svd", [&library, &lists](const P& problem) {
        return SolveSvd(Way::kQr, problem, library, lists);
      });
}

std::unique_ptr<const FactorizationKernel> CreateJacobiSvd(
    const MaybeSolverLibrary& library, const KernelLists& lists) {
  return std::make_unique<SimpleFactorization>(
      "cuda.factorize.svd_jacobi", [&library, &lists](const P& problem) {
        return SolveJacobiSvd(problem, library, lists);
      });
}

}  // namespace tensord::core::cuda
