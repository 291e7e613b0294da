// Between the tensors of a factorization and matrices in workspace.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "core/backend/backend.h"
#include "core/backend/kernel.h"
#include "core/memory/workspace.h"
#include "core/problem/factorization_problem.h"

namespace tensord::core::cuda {

/// Where the elements of a factor lie in workspace, in elements: from one row
/// or column to the next, along the inner mode, and between matrices.
struct FactorPlace {
  int64_t side_stride = 1;
  int64_t inner_stride = 1;
  int64_t matrix_stride = 1;
};

/// The copies that bring matrices to workspace and factors to where they
/// belong, their kernels decided. Matrices lie by columns and without gaps, one
/// after the other.
///
/// Threads  immutable once made; share freely.
class MatrixCopies {
 public:
  /// `transposes`: rows and columns of matrices are exchanged.
  MatrixCopies(const FactorizationProblem& problem, const KernelLists& lists,
               bool transposes);

  // What is to be stored, for problems that have such a factor.
  void AddLeft(const KernelLists& lists, const FactorPlace& place);
  void AddRight(const KernelLists& lists, const FactorPlace& place);
  /// Without gaps: those of a matrix are `count`.
  void AddValues(const KernelLists& lists, int64_t count);

  double nanoseconds() const;
  /// That each of them takes, at most.
  int64_t workspace_bytes() const;
  int64_t heap_bytes() const;

  /// Errors  of all that queue: as Solution::Launch().
  absl::Status Load(const void* a, void* matrices, Workspace workspace,
                    Stream& stream) const;
  absl::Status StoreLeft(const void* from, void* left, Workspace workspace,
                         Stream& stream) const;
  absl::Status StoreRight(const void* from, void* right, Workspace workspace,
                          Stream& stream) const;
  absl::Status StoreValues(const void* from, void* values, Workspace workspace,
                           Stream& stream) const;

 private:
  using Copy = std::unique_ptr<const PermutationSolution>;

  const FactorizationProblem problem_;
  Copy load_, left_, right_, values_;  // null: there is none
};

}  // namespace tensord::core::cuda
