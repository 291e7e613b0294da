#include "core/backend/cuda/matrix/linear_solve.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/backend/cuda/matrix/copy_modes.h"
#include "core/backend/cuda/matrix/matrix_run.h"
#include "core/base/status.h"
#include "core/device/interruption.h"
#include "core/problem/heap_bytes.h"
#include "core/problem/refused_matrix.h"

namespace tensord::core::cuda {
namespace {

using P = LinearSolveProblem;
using Copy = std::unique_ptr<const PermutationSolution>;

constexpr cublasFillMode_t kLower = CUBLAS_FILL_MODE_LOWER;

/// Matrices of n x n, each with its right sides.
struct SolveShape {
  int64_t n, sides, count;

  explicit SolveShape(const P& problem)
      : n(ElementCount(problem.columns)),
        sides(ElementCount(problem.sides)),
        count(ElementCount(problem.batch)) {}
};

bool IsFactored(const P& problem) { return !IsTriangular(problem.structure); }
/// By pivots, into L and U.
bool HasPivots(const P& problem) {
  return IsFactored(problem) &&
         problem.structure != MatrixStructure::kPositiveDefinite;
}

/// Guesses: not fitted to measurements yet.
double Predict(const P& problem, bool is_batched) {
  const SolveShape shape(problem);
  const bool is_single = RealPartOf(problem.type) == ElementType::kFloat32;
  const double flops = FlopCount(problem) / (is_single ? 2 : 1);
  if (is_batched) return 100e3 + flops / 300;
  const double each =
      IsFactored(problem) ? 30e3 + 5e3 * static_cast<double>(shape.n) : 10e3;
  return static_cast<double>(shape.count) * each + flops / 3000;
}

/// The copies, their kernels decided. `b` is null when there is none.
struct SolveCopies {
  SolveCopies(const P& problem, const KernelLists& lists) {
    const SolveShape shape(problem);
    CopyModes of_a(CopyModes::kFrom), of_b(CopyModes::kFrom),
        of_d(CopyModes::kTo);
    of_a.Add(problem.rows, P::kFirst, 1);
    of_a.Add(problem.columns, P::kFirst, shape.n);
    of_a.Add(problem.batch, P::kBatchA, shape.n * shape.n);
    a = std::move(of_a).Solve(lists, problem.type, problem.conj_a);
    if (problem.has_b) {
      of_b.Add(problem.rows, P::kSecond, 1);
      of_b.Add(problem.sides, P::kFirst, shape.n);
      of_b.Add(problem.batch, P::kBatchB, shape.n * shape.sides);
      b = std::move(of_b).Solve(lists, problem.type, problem.conj_b);
    }
    of_d.Add(problem.columns, P::kSecond, 1);
    of_d.Add(problem.sides, P::kSecond, shape.n);
    of_d.Add(problem.batch, P::kBatchD, shape.n * shape.sides);
    d = std::move(of_d).Solve(lists, problem.type);
  }

  double nanoseconds() const {
    return a->predicted_nanoseconds() +
           (b != nullptr ? b->predicted_nanoseconds() : 0) +
           d->predicted_nanoseconds();
  }
  int64_t workspace_bytes() const {
    return std::max({a->workspace_bytes(),
                     b != nullptr ? b->workspace_bytes() : 0,
                     d->workspace_bytes()});
  }

  Copy a, b, d;
};

class SolveSolution final : public LinearSolveSolution {
 public:
  /// `work_count`: elements of workspace that cuSOLVER takes.
  SolveSolution(const P& problem, const SolverLibrary& library,
                SolveCopies copies, bool is_batched, int work_count)
      : Solution(Predict(problem, is_batched) + copies.nanoseconds(),
                 OwnBytes(problem, work_count) + copies.workspace_bytes()),
        problem_(problem),
        shape_(problem),
        library_(library),
        copies_(std::move(copies)),
        is_batched_(is_batched),
        work_count_(work_count) {}

  std::string decision() const override {
    const std::string each =
        absl::StrCat(shape_.n, " x ", shape_.n, " with ", shape_.sides,
                     shape_.sides == 1 ? " right side" : " right sides");
    if (shape_.count == 1) {
      return absl::StrCat(NameOf(problem_.structure), " matrix of ", each,
                          ", copied first");
    }
    return absl::StrCat(shape_.count, " ", NameOf(problem_.structure),
                        " matrices of ", each, ", copied first");
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(problem_) +
           HeapBytes(copies_.a) + HeapBytes(copies_.b) + HeapBytes(copies_.d);
  }
  absl::Status Launch(const LinearSolveOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    TENSORD_ASSIGN_OR_RETURN(
        MatrixRun run,
        MatrixRun::Begin(library_, shape_.count, workspace, AsCuda(stream)));
    TENSORD_RETURN_IF_ERROR(
        QueueLong(predicted_nanoseconds(), run.stream().device(), [&] {
          return VisitSolverType(problem_.type, [&]<typename T>(T) {
            return Queue<T>(operands, workspace, run);
          });
        }));
    TENSORD_ASSIGN_OR_RETURN(const std::vector<MatrixOutcome> all, run.Await());
    for (size_t i = 0; i < all.size(); ++i) {
      TENSORD_RETURN_IF_ERROR(Judge(
          all[i], {shape_.n, shape_.n, static_cast<int64_t>(i), shape_.count}));
    }
    return absl::OkStatus();
  }

 private:
  /// Where matrices and right sides are, and what the libraries work in.
  template <typename T>
  struct Room {
    T* a;
    T* b;
    int* pivots;
    int* unused;  // that a routine says
    T** a_addresses;
    T** b_addresses;
    T* scratch;
  };

  static int64_t OwnBytes(const P& problem, int work_count) {
    const SolveShape shape(problem);
    const int64_t element = SizeOf(problem.type), count = shape.count;
    constexpr auto kInt = static_cast<int64_t>(sizeof(int));
    constexpr auto kAddress = static_cast<int64_t>(sizeof(void*));
    return MatrixRun::WorkspaceBytes(count) +
           Workspace::BytesFor(shape.n * shape.n * count * element) +
           Workspace::BytesFor(shape.n * shape.sides * count * element) +
           Workspace::BytesFor(shape.n * count * kInt) +
           Workspace::BytesFor(kInt) +
           2 * Workspace::BytesFor(count * kAddress) +
           Workspace::BytesFor(work_count * element);
  }

  template <typename T>
  absl::Status Queue(const LinearSolveOperands& operands, Workspace& workspace,
                     MatrixRun& run) const {
    const int64_t n = shape_.n, sides = shape_.sides, count = shape_.count;
    Room<T> room;
    room.a = workspace.Take<T>(n * n * count);
    room.b = workspace.Take<T>(n * sides * count);
    room.pivots = workspace.Take<int>(n * count);
    room.unused = workspace.Take<int>(1);
    room.a_addresses = workspace.Take<T*>(count);
    room.b_addresses = workspace.Take<T*>(count);
    room.scratch = workspace.Take<T>(work_count_);
    const Matrices a = {.type = problem_.type,
                        .data = room.a,
                        .rows = n,
                        .columns = n,
                        .stride = n * n,
                        .count = count};
    TENSORD_RETURN_IF_ERROR(
        LaunchCopy(*copies_.a, operands.a, room.a, workspace, run.stream()));
    TENSORD_RETURN_IF_ERROR(
        run.Check(QueueLook({.matrices = a,
                             .part = PartRead(),
                             .skips_diagonal = problem_.has_unit_diagonal,
                             .facts = run.facts()},
                            run.stream().get()),
                  "looking at matrices"));
    TENSORD_RETURN_IF_ERROR(LoadSides(operands, room.b, workspace, run));
    // What was not read may be anything; libraries see none of it.
    TENSORD_RETURN_IF_ERROR(run.Check(Complete(a, run), "completing matrices"));
    TENSORD_RETURN_IF_ERROR(is_batched_ ? SolveBatch(room, a, run)
                                        : SolveEach(room, run));
    if (!HasPivots(problem_) && !problem_.has_unit_diagonal) {
      TENSORD_RETURN_IF_ERROR(
          run.Check(QueueDiagonal({.matrices = a,
                                   .wants_positive = IsFactored(problem_),
                                   .from_bad = run.notes()},
                                  run.stream().get()),
                    "looking at diagonals"));
    }
    return LaunchCopy(*copies_.d, room.b, operands.d, workspace, run.stream());
  }

  cudaError_t Complete(const Matrices& a, const MatrixRun& run) const {
    const cudaStream_t stream = run.stream().get();
    if (problem_.structure == MatrixStructure::kGeneral) return cudaSuccess;
    if (IsFactored(problem_)) return QueueHermitian(a, stream);
    return QueueTriangle({.matrices = a,
                          .part = PartRead(),
                          .has_unit_diagonal = problem_.has_unit_diagonal},
                         stream);
  }

  absl::Status LoadSides(const LinearSolveOperands& operands, void* b,
                         Workspace& workspace, MatrixRun& run) const {
    if (problem_.has_b) {
      return LaunchCopy(*copies_.b, operands.b, b, workspace, run.stream());
    }
    return run.Check(QueueIdentity({.type = problem_.type,
                                    .data = b,
                                    .rows = shape_.n,
                                    .columns = shape_.n,
                                    .stride = shape_.n * shape_.n,
                                    .count = shape_.count},
                                   run.stream().get()),
                     "writing identities");
  }

  /// One matrix after the other.
  template <typename T>
  absl::Status SolveEach(const Room<T>& room, MatrixRun& run) const {
    const SolverLibrary::Use& use = run.use();
    const auto& routines = use.routines<T>();
    const int n = static_cast<int>(shape_.n),
              sides = static_cast<int>(shape_.sides);
    for (int64_t i = 0; i < shape_.count; ++i) {
      if (CurrentWork::ShouldStop()) return absl::OkStatus();
      T* const a = room.a + i * shape_.n * shape_.n;
      T* const b = room.b + i * shape_.n * shape_.sides;
      int* const pivots = room.pivots + i * shape_.n;
      const auto solve = [&](cublasFillMode_t fill, cublasOperation_t form) {
        const T one = One<T>();
        return use.Check(use.blas_routines<T>().Trsm(
                             use.blas(), CUBLAS_SIDE_LEFT, fill, form,
                             Diagonal(), n, sides, &one, a, n, b, n),
                         "trsm");
      };
      if (HasPivots(problem_)) {
        TENSORD_RETURN_IF_ERROR(
            use.Check(routines.Getrf(use.solver(), n, n, a, n, room.scratch,
                                     pivots, run.info() + i),
                      "getrf"));
        TENSORD_RETURN_IF_ERROR(
            use.Check(routines.Getrs(use.solver(), CUBLAS_OP_N, n, sides, a, n,
                                     pivots, b, n, room.unused),
                      "getrs"));
        continue;
      }
      if (IsFactored(problem_)) {
        TENSORD_RETURN_IF_ERROR(
            use.Check(routines.Potrf(use.solver(), kLower, n, a, n,
                                     room.scratch, work_count_, run.info() + i),
                      "potrf"));
      }
      TENSORD_RETURN_IF_ERROR(SolveTriangles(solve));
    }
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status SolveBatch(const Room<T>& room, const Matrices& matrices,
                          MatrixRun& run) const {
    const auto write_addresses = [&](T** addresses, T* first,
                                     int64_t elements) {
      return run.Check(
          QueueAddresses({.addresses = reinterpret_cast<void**>(addresses),
                          .first = first,
                          .bytes = elements * static_cast<int64_t>(sizeof(T)),
                          .count = shape_.count},
                         run.stream().get()),
          "writing addresses");
    };
    TENSORD_RETURN_IF_ERROR(
        write_addresses(room.a_addresses, room.a, matrices.stride));
    TENSORD_RETURN_IF_ERROR(
        write_addresses(room.b_addresses, room.b, shape_.n * shape_.sides));
    return ForEachPart(shape_.count, [&](int64_t first, int64_t part) {
      return SolvePart(room, run, first, static_cast<int>(part));
    });
  }
  template <typename T>
  absl::Status SolvePart(const Room<T>& room, MatrixRun& run, int64_t first,
                         int count) const {
    const SolverLibrary::Use& use = run.use();
    const auto& routines = use.blas_routines<T>();
    const int n = static_cast<int>(shape_.n),
              sides = static_cast<int>(shape_.sides);
    T** const a = room.a_addresses + first;
    T** const b = room.b_addresses + first;
    int* const pivots = room.pivots + first * shape_.n;
    int* const info = run.info() + first;
    if (HasPivots(problem_)) {
      TENSORD_RETURN_IF_ERROR(use.Check(
          routines.GetrfBatched(use.blas(), n, a, n, pivots, info, count),
          "getrfBatched"));
      int arguments = 0;
      return use.Check(
          routines.GetrsBatched(use.blas(), CUBLAS_OP_N, n, sides, a, n, pivots,
                                b, n, &arguments, count),
          "getrsBatched");
    }
    if (IsFactored(problem_)) {
      TENSORD_RETURN_IF_ERROR(
          use.Check(use.routines<T>().PotrfBatched(use.solver(), kLower, n, a,
                                                   n, info, count),
                    "potrfBatched"));
    }
    return SolveTriangles([&](cublasFillMode_t fill, cublasOperation_t form) {
      const T one = One<T>();
      return use.Check(
          routines.TrsmBatched(use.blas(), CUBLAS_SIDE_LEFT, fill, form,
                               Diagonal(), n, sides, &one, a, n, b, n, count),
          "trsmBatched");
    });
  }

  /// By the triangle that there is, or by L and then its adjoint.
  template <typename Solve>
  absl::Status SolveTriangles(const Solve& solve) const {
    if (problem_.structure == MatrixStructure::kUpperTriangular) {
      return solve(CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N);
    }
    TENSORD_RETURN_IF_ERROR(solve(kLower, CUBLAS_OP_N));
    return IsFactored(problem_) ? solve(kLower, CUBLAS_OP_C) : absl::OkStatus();
  }

  absl::Status Judge(const MatrixOutcome& outcome,
                     const NumberedMatrix& matrix) const {
    if (const int left = outcome.facts.from_not_finite; left > 0) {
      return NotFinite(matrix, shape_.n - left);
    }
    if (outcome.info > 0) {
      return NotSolvable(problem_.structure, matrix, outcome.info);
    }
    if (outcome.note > 0) {
      return NotSolvable(problem_.structure, matrix,
                         shape_.n - outcome.note + 1);
    }
    return absl::OkStatus();
  }

  MatrixPart PartRead() const {
    switch (problem_.structure) {
      case MatrixStructure::kGeneral: return MatrixPart::kAll;
      case MatrixStructure::kUpperTriangular: return MatrixPart::kUpper;
      default: return MatrixPart::kLower;
    }
  }
  cublasDiagType_t Diagonal() const {
    return problem_.has_unit_diagonal ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
  }
  template <typename T>
  static T One() {
    T one{};
    if constexpr (std::is_floating_point_v<T>) {
      one = 1;
    } else {
      one.x = 1;
    }
    return one;
  }

  const P problem_;
  const SolveShape shape_;
  const SolverLibrary& library_;
  const SolveCopies copies_;
  const bool is_batched_;
  const int work_count_;
};

/// Elements of workspace that cuSOLVER takes for a factorization of n x n.
template <typename T>
absl::StatusOr<int> EliminationWork(const SolverLibrary& library,
                                    const P& problem, int n) {
  TENSORD_ASSIGN_OR_RETURN(const SolverLibrary::Use use, library.Take());
  const auto& routines = use.routines<T>();
  int count = 0;
  const cusolverStatus_t status =
      HasPivots(problem)
          ? routines.GetrfSize(use.solver(), n, n, nullptr, n, &count)
          : routines.PotrfSize(use.solver(), kLower, n, nullptr, n, &count);
  return use.CheckedCount(status, count, "a factorization's bufferSize");
}

SimpleLinearSolve::Solved SolveEquations(const P& problem,
                                         const MaybeSolverLibrary& maybe,
                                         const KernelLists& lists,
                                         bool is_batched) {
  TENSORD_RETURN_IF_ERROR(maybe.status());
  const SolverLibrary& library = **maybe;
  const SolveShape shape(problem);
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  constexpr int64_t kMostElements = int64_t{1} << 40;  // of all
  const int64_t wider = std::max(shape.n, shape.sides);
  if (wider > kMost / shape.n || shape.count > kMost ||
      shape.n * wider > kMostElements / shape.count) {
    return Unimplemented("MATRIX_TOO_LARGE", shape.count, " matrices of ",
                         shape.n, " x ", shape.n, " elements with ",
                         shape.sides,
                         " right sides, cuSOLVER takes matrices and elements "
                         "of one up to 2^31, and of all up to 2^40");
  }
  if (is_batched && shape.count == 1) {
    return Unimplemented("NO_BATCH", "this is for several matrices");
  }
  absl::StatusOr<int> work_count = 0;
  if (!is_batched && IsFactored(problem)) {
    work_count = VisitSolverType(problem.type, [&]<typename T>(T) {
      return EliminationWork<T>(library, problem, static_cast<int>(shape.n));
    });
  }
  TENSORD_RETURN_IF_ERROR(work_count.status());
  return std::make_unique<SolveSolution>(
      problem, library, SolveCopies(problem, lists), is_batched, *work_count);
}

}  // namespace

std::unique_ptr<const LinearSolveKernel> CreateSolve(
    const MaybeSolverLibrary& library, const KernelLists& lists) {
  return std::make_unique<SimpleLinearSolve>(
      "cuda.solve.one_by_one", [&library, &lists](const P& problem) {
        return SolveEquations(problem, library, lists, /*is_batched=*/false);
      });
}

std::unique_ptr<const LinearSolveKernel> CreateBatchedSolve(
    const MaybeSolverLibrary& library, const KernelLists& lists) {
  return std::make_unique<SimpleLinearSolve>(
      "cuda.solve.batched", [&library, &lists](const P& problem) {
        return SolveEquations(problem, library, lists, /*is_batched=*/true);
      });
}

}  // namespace tensord::core::cuda
