// Equations and exponentials between their tensors and workspace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "core/backend/backend.h"
#include "core/backend/cuda/matrix/matrix_run.h"
#include "core/backend/kernel.h"
#include "core/memory/workspace.h"
#include "core/problem/linear_solve_problem.h"

namespace tensord::core::cuda {

/// Matrices of n x n, each with its right sides.
struct SolveShape {
  int64_t n, sides, count;

  explicit SolveShape(const LinearSolveProblem& problem)
      : n(ElementCount(problem.columns)),
        sides(ElementCount(problem.sides)),
        count(ElementCount(problem.batch)) {}

  /// Square matrices at `data`.
  Matrices MatricesAt(ElementType type, void* data) const {
    return {.type = type,
            .data = data,
            .rows = n,
            .columns = n,
            .stride = n * n,
            .count = count};
  }
};

/// The copies, their kernels decided. `b` is null when there is none.
struct SolveCopies {
  using Copy = std::unique_ptr<const PermutationSolution>;

  SolveCopies(const LinearSolveProblem& problem, const KernelLists& lists);

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
  /// What it takes of the heap.
  int64_t heap_bytes() const;

  Copy a, b, d;
};

/// Queues the copy of all matrices to `to`, the look for what is not finite,
/// and writes what of them is not to be read: libraries see none of that.
absl::Status LoadMatrices(const LinearSolveProblem& problem,
                          const SolveCopies& copies, const void* a,
                          const Matrices& to, Workspace workspace,
                          MatrixRun& run);

}  // namespace tensord::core::cuda
