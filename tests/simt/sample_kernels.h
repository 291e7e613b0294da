// Launchers of small kernels of the kinds that the product has, written as the
// product writes them.
#pragma once

#include <cstdint>

#include "cuda_runtime_api.h"

namespace tensord::test {

/// `batch_count` matrices of `row_count` x `column_count`, packed by rows.
struct TransposeShape {
  int row_count;
  int column_count;
  int batch_count;
};

/// Transposes every matrix, through shared memory.
cudaError_t LaunchTranspose(const TransposeShape& shape, const float* from,
                            float* to, cudaStream_t stream);

/// sums[i] = the sum of the 32 values from values[32 * i] on, by shuffles.
cudaError_t LaunchWarpSums(const float* values, int sum_count, float* sums,
                           cudaStream_t stream);

inline constexpr int kPartialSums = 16;

/// *sum = the sum of `count` values; two kernels, the first with vector loads.
/// `partial` has kPartialSums elements.
cudaError_t LaunchSum(const float* values, int count, float* partial,
                      float* sum, cudaStream_t stream);

/// The same in one kernel, whose last block adds up the partial sums. `ticket`
/// is 0 before and after.
cudaError_t LaunchSumOfLastBlock(const float* values, int count, float* partial,
                                 unsigned* ticket, float* sum,
                                 cudaStream_t stream);

inline constexpr int kReverseTile = 256;

/// Reverses the order of the values in each tile of kReverseTile, with
/// asynchronous copies that run one tile ahead.
cudaError_t LaunchReverseTiles(const float* from, int tile_count, float* to,
                               cudaStream_t stream);

}  // namespace tensord::test
