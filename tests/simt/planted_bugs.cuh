// Kernels that each break one rule.
#pragma once

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include "simt/shared_memory.h"

namespace tensord::test {

inline __device__ int* SharedInts() {
  return static_cast<int*>(core::SharedMemory());
}

/// Reads what another thread has perhaps not written yet.
inline __global__ void ReverseWithoutBarrier(const int* from, int* to) {
  int* const tile = SharedInts();
  tile[threadIdx.x] = from[threadIdx.x];
  to[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

/// Overwrites what another thread has perhaps not read yet.
inline __global__ void ReverseTwiceWithOneBarrier(const int* from, int* to) {
  int* const tile = SharedInts();
  for (unsigned round = 0; round < 2; ++round) {
    const unsigned first = round * blockDim.x;
    tile[threadIdx.x] = from[first + threadIdx.x];
    __syncthreads();
    to[first + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
  }
}

/// Lanes exchange values through memory without __syncwarp().
inline __global__ void NeighbourWithoutSyncwarp(const int* from, int* to) {
  int* const tile = SharedInts();
  tile[threadIdx.x] = from[threadIdx.x];
  to[threadIdx.x] = tile[threadIdx.x ^ 1];
}

/// The same with it.
inline __global__ void NeighbourWithSyncwarp(const int* from, int* to) {
  int* const tile = SharedInts();
  tile[threadIdx.x] = from[threadIdx.x];
  __syncwarp();
  to[threadIdx.x] = tile[threadIdx.x ^ 1];
}

inline __global__ void DivergentBarrier(int* to) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  to[threadIdx.x] = 1;
}

inline __global__ void BarrierAfterReturn(int* to, unsigned count) {
  if (threadIdx.x >= count) return;
  __syncthreads();
  to[threadIdx.x] = 1;
}

inline __global__ void LaneOutsideItsMask(int* to) {
  to[threadIdx.x] = __shfl_sync(0x0000ffffu, static_cast<int>(threadIdx.x), 0);
}

inline __global__ void DifferentMasks(int* to) {
  const unsigned mask = threadIdx.x < 16 ? 0xffffffffu : 0xffff0000u;
  to[threadIdx.x] = __shfl_xor_sync(mask, static_cast<int>(threadIdx.x), 1);
  __syncthreads();  // nobody is gone, so the first half waits in vain
}

inline __global__ void OddWidth(int* to) {
  to[threadIdx.x] =
      __shfl_down_sync(0xffffffffu, static_cast<int>(threadIdx.x), 1, 12);
}

/// Waits for all batches but the last, and there is no other.
inline __global__ void ForgottenWait(const int* from, int* to) {
  int* const tile = SharedInts();
  __pipeline_memcpy_async(&tile[threadIdx.x], &from[threadIdx.x], 4);
  __pipeline_commit();
  __pipeline_wait_prior(1);
  __syncthreads();
  to[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

inline __global__ void MisalignedStore(int* to) {
  __stcs(reinterpret_cast<int4*>(to + 1), make_int4(1, 2, 3, 4));
}

inline __global__ void MisalignedPlainStore(int* to) {
  *reinterpret_cast<int4*>(to + 1) = make_int4(1, 2, 3, 4);
}

inline __global__ void MisalignedAsyncCopy(const int* from) {
  __pipeline_memcpy_async(SharedInts(), from + 1, 16);
}

inline __global__ void AsyncCopyOfTwoBytes(const int* from) {
  __pipeline_memcpy_async(SharedInts(), from, 2);
}

inline __global__ void WriteBesideSharedMemory(int index) {
  SharedInts()[index] = 1;
}

inline __global__ void CopySharedMemory(int* to) {
  to[threadIdx.x] = SharedInts()[threadIdx.x];
}

inline __global__ void CopyOne(const int* from, int* to) {
  to[blockIdx.x] = from[blockIdx.x];
}

/// Every block adds one; not in one step.
inline __global__ void CountWithoutAtomics(int* counter) { *counter += 1; }

/// The block with the last ticket reads what the others wrote.
inline __global__ void LastBlockWithoutFence(int* values, unsigned* ticket,
                                             int* sum) {
  values[blockIdx.x] = 1;
  if (atomicInc(ticket, gridDim.x - 1) != gridDim.x - 1) return;
  int total = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) total += values[i];
  *sum = total;
}

}  // namespace tensord::test
