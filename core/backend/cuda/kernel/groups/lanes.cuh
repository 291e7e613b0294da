// Lanes of a warp, in device code.
#pragma once

#include <cuda_runtime.h>

#include "core/backend/cuda/kernel/element.cuh"

namespace tensord::core::cuda {

/// The value of another lane, `distance` away.
template <typename T>
__device__ __forceinline__ T FromLane(T x, int distance) {
  if constexpr (kIsComplex<T>) {
    return T(__shfl_xor_sync(0xffffffffu, x.real(), distance),
             __shfl_xor_sync(0xffffffffu, x.imag(), distance));
  } else {
    return __shfl_xor_sync(0xffffffffu, x, distance);
  }
}

}  // namespace tensord::core::cuda
