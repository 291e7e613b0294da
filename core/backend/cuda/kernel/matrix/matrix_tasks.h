// What the kernels around decompositions are given, and the functions that
// queue them. Plain C++: made by .cc files, run by the .cu file.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/base/element_type.h"

namespace tensord::core::cuda {

/// `count` matrices by columns, `stride` elements apart.
///
/// Invariant  float32, float64, complex64 or complex128; count, rows and
///            columns are at least 1.
struct Matrices {
  ElementType type = ElementType::kFloat32;
  void* data = nullptr;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t stride = 1;
  int64_t count = 1;
};

/// What is seen of a matrix before it is decomposed.
struct MatrixFacts {
  /// Columns, or rows, from the first one on that has a NaN or an infinity; 0:
  /// none has.
  int32_t from_not_finite = 0;
  /// No part of an element is 2^(exponent - kBias) or more, but one is at least
  /// half of that; 0: all are 0.
  int32_t exponent = 0;

  static constexpr int32_t kBias = 4096;
};

/// The power of two that a matrix is divided by before a library decomposes it,
/// which may square its elements and add up squares: 0 unless they are huge or
/// tiny.
constexpr int32_t PowerFor(const MatrixFacts& facts, ElementType real_type) {
  const int32_t safe = real_type == ElementType::kFloat32 ? 40 : 400;
  if (facts.exponent == 0) return 0;
  const int32_t power = facts.exponent - MatrixFacts::kBias;
  return power > safe || power < -safe ? power : 0;
}

/// Which elements of a matrix count.
enum class MatrixPart { kAll, kLower, kUpper };

struct LookTask {
  Matrices matrices;
  MatrixPart part = MatrixPart::kAll;
  bool skips_diagonal = false;
  bool counts_rows = false;      // from what is not finite
  MatrixFacts* facts = nullptr;  // (count), of zeros before
};
cudaError_t QueueLook(const LookTask& task, cudaStream_t stream);

/// Divides each matrix by 2^PowerFor() its facts, or multiplies it.
struct PowerTask {
  Matrices matrices;
  ElementType real_type = ElementType::kFloat32;  // of what the facts are of
  bool multiplies = false;
  const MatrixFacts* facts = nullptr;  // (count)
};
cudaError_t QueuePower(const PowerTask& task, cudaStream_t stream);

/// Writes r, which stands at and above the diagonal of `matrices`, and zeros
/// below, with rows multiplied so that the diagonal is real and not negative;
/// and what columns of Q are to be multiplied by.
///
/// Requires  r.columns is matrices.columns, and r.rows no more than its rows.
struct UpperTask {
  Matrices matrices;
  Matrices r;
  void* phases = nullptr;  // (count, r.rows)
};
cudaError_t QueueUpper(const UpperTask& task, cudaStream_t stream);

/// Writes zeros beyond a triangle of square matrices.
struct TriangleTask {
  Matrices matrices;
  MatrixPart part = MatrixPart::kLower;
  bool has_real_diagonal = false;  // imaginary parts there become 0
  bool has_unit_diagonal = false;  // it becomes ones
};
cudaError_t QueueTriangle(const TriangleTask& task, cudaStream_t stream);

/// Makes the upper triangle of square Hermitian matrices from the lower one.
cudaError_t QueueHermitian(const Matrices& matrices, cudaStream_t stream);

/// Writes identities.
cudaError_t QueueIdentity(const Matrices& matrices, cudaStream_t stream);

/// Looks for what is no pivot on the diagonal: 0, or what is not positive.
struct DiagonalTask {
  Matrices matrices;
  bool wants_positive = false;
  /// Diagonal elements from the first such one on; of zeros before.
  int32_t* from_bad = nullptr;  // (count)
};
cudaError_t QueueDiagonal(const DiagonalTask& task, cudaStream_t stream);

/// Multiplies row or column k of each matrix by its factor number k.
struct FactorTask {
  Matrices matrices;
  const void* factors = nullptr;  // (count, factor), of the matrices' type
  int64_t factor_count = 1;       // columns or rows beyond are left alone
  bool of_rows = false;
  bool conjugates = false;  // the matrices first
};
cudaError_t QueueFactors(const FactorTask& task, cudaStream_t stream);

/// Cuts off singular values, see Truncation.
struct CutTask {
  ElementType type = ElementType::kFloat32;  // of the matrices
  /// Descending. What is cut becomes 0, the others are scaled.
  void* values = nullptr;   // (count, value_count), real
  void* left = nullptr;     // (count, value_count): what columns are multiplied
  void* right = nullptr;    // by, and rows of the right factor
  int32_t* kept = nullptr;  // (count)
  int64_t count = 1;
  int64_t value_count = 1;
  int64_t most = 1;  // are kept
  double cutoff = 0;
  double relative_cutoff = 0;
  double discarded_squares = 0;
  double relative_discarded_squares = 0;
  bool absorbs_left = false, absorbs_right = false;  // both: roots
  bool renormalizes = false;
};
cudaError_t QueueCut(const CutTask& task, cudaStream_t stream);

/// Writes the addresses of the matrices.
struct AddressTask {
  void** addresses = nullptr;  // (count)
  void* first = nullptr;
  int64_t bytes = 0;  // from one to the next
  int64_t count = 1;
};
cudaError_t QueueAddresses(const AddressTask& task, cudaStream_t stream);

}  // namespace tensord::core::cuda
