// The kernels behind sample_kernels.h.
#pragma once

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include "simt/shared_memory.h"
#include "tests/simt/sample_kernels.h"

namespace tensord::test {

inline constexpr int kTile = 32;
inline constexpr int kTileRows = 8;  // a thread moves kTile / kTileRows values
inline constexpr int kTilePitch = kTile + 1;
inline constexpr int kSumThreads = 128;

template <typename T>
__global__ void __launch_bounds__(kTile* kTileRows)
    Transpose(const TransposeShape __grid_constant__ shape,
              const T* __restrict__ from, T* __restrict__ to) {
  T* const tile = static_cast<T*>(core::SharedMemory());
  const int column = blockIdx.x * kTile, row = blockIdx.y * kTile;
  for (int batch = blockIdx.z; batch < shape.batch_count; batch += gridDim.z) {
    const int64_t origin =
        int64_t{batch} * shape.row_count * shape.column_count;
    for (int i = threadIdx.y; i < kTile; i += kTileRows) {
      const int y = row + i, x = column + threadIdx.x;
      if (y < shape.row_count && x < shape.column_count) {
        tile[i * kTilePitch + threadIdx.x] =
            __ldg(&from[origin + int64_t{y} * shape.column_count + x]);
      }
    }
    __syncthreads();
    for (int i = threadIdx.y; i < kTile; i += kTileRows) {
      const int y = row + threadIdx.x, x = column + i;
      if (y < shape.row_count && x < shape.column_count) {
        __stcs(&to[origin + int64_t{x} * shape.row_count + y],
               tile[threadIdx.x * kTilePitch + i]);
      }
    }
    __syncthreads();  // before the next matrix overwrites the tile
  }
}

__device__ __forceinline__ float SumOfWarp(float value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_down_sync(0xffffffffu, value, distance);
  }
  return value;  // of lane 0
}

__global__ void WarpSums(const float* values, int sum_count, float* sums) {
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
  if (warp >= sum_count) return;
  const float sum = SumOfWarp(values[blockIdx.x * blockDim.x + threadIdx.x]);
  if (threadIdx.x % warpSize == 0) sums[warp] = sum;
}

/// The sum of all threads' values; of thread 0. `scratch` holds a value a warp.
__device__ __forceinline__ float SumOfBlock(float value, float* scratch) {
  value = SumOfWarp(value);
  if (threadIdx.x % warpSize == 0) scratch[threadIdx.x / warpSize] = value;
  __syncthreads();
  const unsigned warps = blockDim.x / warpSize;
  if (threadIdx.x < warpSize) {
    value = SumOfWarp(threadIdx.x < warps ? scratch[threadIdx.x] : 0.0f);
  }
  __syncthreads();  // before the scratch is used again
  return value;
}

/// The sum of this thread's share of the values.
__device__ __forceinline__ float SumOfShare(const float* values, int count) {
  const int threads = gridDim.x * blockDim.x;
  const int self = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int i = self; i < count / 4; i += threads) {
    const float4 four = __ldcs(&reinterpret_cast<const float4*>(values)[i]);
    sum += (four.x + four.y) + (four.z + four.w);
  }
  for (int i = count / 4 * 4 + self; i < count; i += threads) sum += values[i];
  return sum;
}

__global__ void __launch_bounds__(kSumThreads)
    SumShares(const float* __restrict__ values, int count,
              float* __restrict__ partial) {
  auto* const scratch = static_cast<float*>(core::SharedMemory());
  const float sum = SumOfBlock(SumOfShare(values, count), scratch);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kSumThreads)
    SumPartial(const float* __restrict__ partial, int count,
               float* __restrict__ result) {
  auto* const scratch = static_cast<float*>(core::SharedMemory());
  float sum = 0.0f;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += partial[i];
  sum = SumOfBlock(sum, scratch);
  if (threadIdx.x == 0) *result = sum;
}

__global__ void __launch_bounds__(kSumThreads)
    SumOfLastBlock(const float* __restrict__ values, int count, float* partial,
                   unsigned* ticket, float* __restrict__ result) {
  auto* const scratch = static_cast<float*>(core::SharedMemory());
  float sum = SumOfBlock(SumOfShare(values, count), scratch);
  int is_last = 0;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    is_last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  if (!__syncthreads_or(is_last)) return;
  sum = 0.0f;
  for (int i = threadIdx.x; i < static_cast<int>(gridDim.x); i += blockDim.x) {
    sum += partial[i];
  }
  sum = SumOfBlock(sum, scratch);
  if (threadIdx.x == 0) *result = sum;
}

__global__ void __launch_bounds__(kReverseTile / 4)
    ReverseTiles(const float* __restrict__ from, int tile_count,
                 float* __restrict__ to) {
  auto* const tiles = static_cast<float*>(core::SharedMemory());
  const int first = threadIdx.x * 4;
  const auto fetch = [&](int tile) {
    if (tile < tile_count) {
      __pipeline_memcpy_async(&tiles[tile % 2 * kReverseTile + first],
                              &from[tile * kReverseTile + first], 16);
    }
    __pipeline_commit();
  };
  fetch(0);
  for (int tile = 0; tile < tile_count; ++tile) {
    fetch(tile + 1);
    __pipeline_wait_prior(1);
    __syncthreads();
    for (int i = first; i < first + 4; ++i) {
      to[tile * kReverseTile + i] =
          tiles[tile % 2 * kReverseTile + kReverseTile - 1 - i];
    }
    __syncthreads();  // before the tile after the next arrives here
  }
}

}  // namespace tensord::test
