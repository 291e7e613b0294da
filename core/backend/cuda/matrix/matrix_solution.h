// What all solutions that factorize matrices by cuSOLVER have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/backend/cuda/kernel/matrix/matrix_tasks.h"
#include "core/backend/cuda/matrix/matrix_copies.h"
#include "core/backend/cuda/matrix/matrix_run.h"
#include "core/backend/kernel.h"
#include "core/problem/heap_bytes.h"
#include "core/problem/refused_matrix.h"

namespace tensord::core::cuda {

/// How many matrices there are, and how large they are.
struct MatrixShape {
  int64_t rows, columns, inner;  // inner: the shorter side's
  int64_t count;

  explicit MatrixShape(const FactorizationProblem& problem);
};

/// The library, for problems of that method that it can count.
/// Errors  UNIMPLEMENTED, reason OTHER_METHOD or MATRIX_TOO_LARGE; why there is
///         no library.
absl::StatusOr<const SolverLibrary*> LibraryFor(
    const FactorizationProblem& problem, FactorizationMethod method,
    const MaybeSolverLibrary& library);

/// The side up to which matrices are decomposed by batched Jacobi methods: as
/// far as gesvdjBatched goes.
inline constexpr int64_t kMostBatchedSide = 32;

/// How long a routine takes, for a cost model.
struct RoutineCost {
  double ns_per_matrix = 0;
  double ns_per_column = 0;  // of a matrix
  double flops_per_ns = 1;   // of those of FlopCount(), in float64
};
double NanosecondsOf(const FactorizationProblem& problem,
                     const RoutineCost& cost);

/// Copies matrices to workspace, has them decomposed and waits for what is to
/// be said of that: whether they could be, and how many values are kept.
/// Meanwhile others launch their work.
class MatrixSolution : public FactorizationSolution {
 public:
  std::string decision() const override;
  absl::Status Launch(const FactorizationOperands& operands,
                      Workspace& workspace, Stream& stream) const override;

 protected:
  /// One launch.
  struct Work {
    const FactorizationOperands& operands;
    Workspace& workspace;
    MatrixRun& run;  // notes: how many values an SVD keeps
    Matrices matrices;
    bool may_be_scaled = false;  // a matrix, as its facts say

    CudaStream& stream() const { return run.stream(); }
    cudaStream_t queue() const { return run.stream().get(); }
  };

  /// `own_bytes`: what Decompose() takes from the workspace.
  /// Lifetime  `library` outlives *this.
  MatrixSolution(const FactorizationProblem& problem,
                 const SolverLibrary& library, MatrixCopies copies,
                 bool transposes, double nanoseconds, int64_t own_bytes);

  /// Queues the decomposition of work.matrices and the copies of its results.
  virtual absl::Status Decompose(Work& work) const = 0;
  /// OK, or why a matrix has no results.
  virtual absl::Status Judge(const MatrixOutcome& outcome,
                             const NumberedMatrix& matrix) const = 0;

  const FactorizationProblem& problem() const { return problem_; }
  const MatrixShape& shape() const { return shape_; }
  const MatrixCopies& copies() const { return copies_; }
  int64_t heap_bytes() const {
    return HeapBytes(problem_) + copies_.heap_bytes();
  }

 private:
  /// Sees whether elements are finite, and scales matrices whose elements are
  /// huge or tiny.
  absl::Status LookAtMatrices(Work& work) const;
  /// Waits for all that is queued.
  /// Errors  INVALID_ARGUMENT: a matrix is not finite, and should be.
  absl::StatusOr<std::vector<MatrixOutcome>> Await(Work& work) const;
  NumberedMatrix Named(size_t number) const {
    return {shape_.rows, shape_.columns, static_cast<int64_t>(number),
            shape_.count};
  }

  const FactorizationProblem problem_;
  const MatrixShape shape_;
  const SolverLibrary& library_;
  const MatrixCopies copies_;
  const bool transposes_;
};

}  // namespace tensord::core::cuda
