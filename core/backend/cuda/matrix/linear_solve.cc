#include "core/backend/cuda/matrix/linear_solve.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/backend/cuda/matrix/copy_modes.h"
#include "core/backend/cuda/matrix/elimination.h"
#include "core/backend/cuda/matrix/exponential.h"
#include "core/backend/cuda/matrix/matrix_run.h"
#include "core/backend/cuda/matrix/solve_copies.h"
#include "core/base/status.h"
#include "core/problem/heap_bytes.h"
#include "core/problem/refused_matrix.h"

namespace tensord::core::cuda {
namespace {

using P = LinearSolveProblem;

/// Guesses: not fitted to measurements yet.
double Predict(const P& problem, bool is_batched) {
  const SolveShape shape(problem);
  const bool is_single = RealPartOf(problem.type) == ElementType::kFloat32;
  const double flops = FlopCount(problem) / (is_single ? 2 : 1);
  if (is_batched) return 100e3 + flops / 300;
  const double each = !IsTriangular(problem.structure)
                          ? 30e3 + 5e3 * static_cast<double>(shape.n)
                          : 10e3;
  return static_cast<double>(shape.count) * each + flops / 3000;
}

class SolveSolution final : public LinearSolveSolution {
 public:
  SolveSolution(const P& problem, const SolverLibrary& library,
                SolveCopies copies, const Elimination& elimination,
                bool is_batched)
      : Solution(Predict(problem, is_batched) + copies.nanoseconds(),
                 OwnBytes(problem, elimination) + copies.workspace_bytes()),
        problem_(problem),
        shape_(problem),
        library_(library),
        copies_(std::move(copies)),
        elimination_(elimination) {}

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
           copies_.heap_bytes();
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
  static int64_t OwnBytes(const P& problem, const Elimination& elimination) {
    const SolveShape shape(problem);
    const int64_t element = SizeOf(problem.type);
    return MatrixRun::WorkspaceBytes(shape.count) +
           Workspace::BytesFor(shape.n * shape.n * shape.count * element) +
           Workspace::BytesFor(shape.n * shape.sides * shape.count * element) +
           elimination.RoomBytes(problem.type);
  }

  template <typename T>
  absl::Status Queue(const LinearSolveOperands& operands, Workspace& workspace,
                     MatrixRun& run) const {
    const int64_t n = shape_.n, count = shape_.count;
    T* const a = workspace.Take<T>(n * n * count);
    T* const b = workspace.Take<T>(n * shape_.sides * count);
    const auto room = elimination_.TakeRoom<T>(workspace);
    const Matrices matrices = shape_.MatricesAt(problem_.type, a);
    TENSORD_RETURN_IF_ERROR(
        LoadMatrices(problem_, copies_, operands.a, matrices, workspace, run));
    TENSORD_RETURN_IF_ERROR(LoadSides(operands, b, workspace, run));
    TENSORD_RETURN_IF_ERROR(elimination_.Queue(a, b, room, run));
    if (!elimination_.has_pivots() && !problem_.has_unit_diagonal) {
      TENSORD_RETURN_IF_ERROR(
          run.Check(QueueDiagonal({.matrices = matrices,
                                   .wants_positive = elimination_.is_factored(),
                                   .from_bad = run.notes()},
                                  run.stream().get()),
                    "looking at diagonals"));
    }
    return LaunchCopy(*copies_.d, b, operands.d, workspace, run.stream());
  }

  absl::Status LoadSides(const LinearSolveOperands& operands, void* b,
                         Workspace& workspace, MatrixRun& run) const {
    if (problem_.has_b) {
      return LaunchCopy(*copies_.b, operands.b, b, workspace, run.stream());
    }
    return run.Check(
        QueueIdentity(shape_.MatricesAt(problem_.type, b), run.stream().get()),
        "writing identities");
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

  const P problem_;
  const SolveShape shape_;
  const SolverLibrary& library_;
  const SolveCopies copies_;
  const Elimination elimination_;
};

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
  if (problem.is_exponential()) {
    return SolveExponential(problem, library, lists, is_batched);
  }
  TENSORD_ASSIGN_OR_RETURN(
      const Elimination elimination,
      Elimination::Make(problem.structure, problem.has_unit_diagonal, shape,
                        problem.type, is_batched, library));
  return std::make_unique<SolveSolution>(
      problem, library, SolveCopies(problem, lists), elimination, is_batched);
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
