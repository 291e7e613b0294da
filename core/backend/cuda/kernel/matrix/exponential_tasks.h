// What the kernels around exponentials of matrices are given, and the functions
// that queue them. Plain C++: made by .cc files, run by the .cu file.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/backend/cuda/kernel/matrix/matrix_tasks.h"

namespace tensord::core::cuda {

/// The sums of the absolute values of each column, times weights of rows over
/// their divisor.
struct SumsTask {
  Matrices matrices;
  const double* weights = nullptr;   // (count, rows); null: ones
  const double* divisors = nullptr;  // (count), with weights; not of 0
  double* sums = nullptr;            // (count, columns); null: not wanted
  double* largest = nullptr;         // (count), of zeros before
};
cudaError_t QueueSums(const SumsTask& task, cudaStream_t stream);

/// Notes the exponent of the largest element beside the diagonal of each column
/// and row of square matrices, kOfZero where there is none but 0.
struct ExponentsTask {
  Matrices matrices;
  int32_t* of_columns = nullptr;  // (count, columns)
  int32_t* of_rows = nullptr;     // (count, rows)
};
cudaError_t QueueExponents(const ExponentsTask& task, cudaStream_t stream);

/// Balances columns and rows by BalancingPower() of these, all at once, of the
/// matrices for which that is wanted.
struct BalanceTask {
  Matrices matrices;
  const int32_t* wanted = nullptr;  // (count): 0 or 1
  const int32_t* of_columns = nullptr;
  const int32_t* of_rows = nullptr;
  int32_t* powers = nullptr;  // (count, columns): all that was multiplied by
};
cudaError_t QueueBalance(const BalanceTask& task, cudaStream_t stream);

/// Undoes it: multiplies row i and divides column i by 2^powers[i], of those
/// matrices alone that were `kept`, or were not.
struct UnbalanceTask {
  Matrices matrices;
  const int32_t* powers = nullptr;  // (count, columns)
  const int32_t* kept = nullptr;    // (count)
  bool of_kept = true;
};
cudaError_t QueueUnbalance(const UnbalanceTask& task, cudaStream_t stream);

/// Divides each matrix by 2^(times * its power).
struct DivideTask {
  Matrices matrices;
  const int32_t* powers = nullptr;  // (count)
  int32_t times = 1;
};
cudaError_t QueueDivide(const DivideTask& task, cudaStream_t stream);

/// to = of_identity * identity + the sum of factor * matrices, which lie as
/// those of `to`, and of which the first may be these.
struct CombineTask {
  static constexpr int kMost = 4;

  Matrices to;
  double of_identity = 0;
  int summand_count = 0;
  double factors[kMost] = {};
  const void* summands[kMost] = {};
};
cudaError_t QueueCombine(const CombineTask& task, cudaStream_t stream);

/// minus = even - odd, and odd becomes even + odd. All lie as `odd`.
struct QuotientTask {
  Matrices odd;
  const void* even = nullptr;
  void* minus = nullptr;
};
cudaError_t QueueQuotient(const QuotientTask& task, cudaStream_t stream);

/// Copies those matrices that have been squared as often as they are to be.
struct FinishedTask {
  Matrices from;
  void* to = nullptr;
  const int32_t* squarings = nullptr;  // (count)
  int32_t done = 0;
};
cudaError_t QueueFinished(const FinishedTask& task, cudaStream_t stream);

}  // namespace tensord::core::cuda
