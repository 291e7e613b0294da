// Addresses from linear indices, in device code.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/backend/cuda/kernel/index_space.h"

namespace tensord::core::cuda {

/// Requires  n < 2^31.
__device__ __forceinline__ uint32_t Quotient(uint32_t n, const FastDivisor& d) {
  return (__umulhi(n, d.multiplier) + n) >> d.shift;
}
__device__ __forceinline__ uint32_t Remainder(uint32_t n,
                                              const FastDivisor& d) {
  return n - Quotient(n, d) * d.divisor;
}

/// One offset per operand, in elements.
template <int operand_count>
struct Offsets {
  int64_t at[operand_count] = {};
};

/// The offsets of the `index`-th element of `space`, by one thread.
template <int operand_count, int mode_limit>
__device__ __forceinline__ Offsets<operand_count> OffsetsOf(
    const IndexSpace<operand_count, mode_limit>& space, uint32_t index) {
  Offsets<operand_count> offsets;
  for (int m = 0; m + 1 < space.mode_count; ++m) {
    const auto& mode = space.modes[m];
    const uint32_t rest = Quotient(index, mode.extent);
    const int64_t place = index - rest * mode.extent.divisor;
    for (int i = 0; i < operand_count; ++i) {
      offsets.at[i] += place * mode.strides[i];
    }
    index = rest;
  }
  if (space.mode_count > 0) {
    const auto& last = space.modes[space.mode_count - 1];
    for (int i = 0; i < operand_count; ++i) {
      offsets.at[i] += static_cast<int64_t>(index) * last.strides[i];
    }
  }
  return offsets;
}

template <int operand_count, int mode_limit>
__device__ __forceinline__ Offsets<operand_count> OffsetsOf(
    const Loops<operand_count, mode_limit>& loops, int64_t index) {
  Offsets<operand_count> offsets;
  for (int m = 0; m < loops.mode_count; ++m) {
    const auto& mode = loops.modes[m];
    const int64_t rest = index / mode.extent;
    const int64_t place = index - rest * mode.extent;
    for (int i = 0; i < operand_count; ++i) {
      offsets.at[i] += place * mode.strides[i];
    }
    index = rest;
  }
  return offsets;
}

/// The same by a whole warp, a lane a mode: the way of A. Hynninen, D. Lyakh,
/// "cuTT" (2017), section 4.
/// Requires  every lane of the warp calls it with the same arguments.
template <int operand_count, int mode_limit>
__device__ __forceinline__ Offsets<operand_count> WarpOffsetsOf(
    const IndexSpace<operand_count, mode_limit>& space, uint32_t index) {
  Offsets<operand_count> offsets;
  const int lane = threadIdx.x % 32;
  for (int m = lane; m < space.mode_count; m += 32) {
    const auto& mode = space.modes[m];
    const int64_t place = Remainder(Quotient(index, mode.before), mode.extent);
    for (int i = 0; i < operand_count; ++i) {
      offsets.at[i] += place * mode.strides[i];
    }
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    for (int i = 0; i < operand_count; ++i) {
      offsets.at[i] += __shfl_xor_sync(0xffffffffu, offsets.at[i], distance);
    }
  }
  return offsets;
}

/// The offset of one operand.
template <int operand_count, int mode_limit>
__device__ __forceinline__ int64_t
OffsetOf(const IndexSpace<operand_count, mode_limit>& space, uint32_t index,
         int operand) {
  int64_t offset = 0;
  for (int m = 0; m < space.mode_count; ++m) {
    const auto& mode = space.modes[m];
    const uint32_t rest = Quotient(index, mode.extent);
    const int64_t place = index - rest * mode.extent.divisor;
    offset += place * mode.strides[operand];
    index = rest;
  }
  return offset;
}

}  // namespace tensord::core::cuda
