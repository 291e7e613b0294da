// Values that are joined as they come, in device code.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/backend/cuda/kernel/element_math.cuh"

namespace tensord::core::cuda {

/// Joins values in pairs, pairs of pairs and so on; the topmost level takes in
/// whatever comes.
template <typename T, uint32_t kLevels>
struct LevelTree {
  T levels[kLevels];
  uint32_t filled = 0;  // a bit a level

  __device__ __forceinline__ void Push(const Arithmetic& arithmetic,
                                       BinaryOperator op, T value) {
    // Equal subtrees are joined until one finds its level empty.
    bool is_placed = false;
#pragma unroll
    for (uint32_t level = 0; level < kLevels; ++level) {
      if (is_placed) continue;
      const bool is_filled = filled >> level & 1;
      if (is_filled) {
        value = ApplyReducing(arithmetic, op, levels[level], value);
      }
      if (is_filled && level + 1 < kLevels) {
        filled ^= 1u << level;
      } else {
        levels[level] = value;
        filled |= 1u << level;
        is_placed = true;
      }
    }
  }

  /// Without values it is `none`.
  __device__ __forceinline__ T Total(const Arithmetic& arithmetic,
                                     BinaryOperator op, T none) const {
    T result = none;
#pragma unroll
    for (uint32_t level = 0; level < kLevels; ++level) {
      if (filled >> level & 1) {
        result = ApplyReducing(arithmetic, op, levels[level], result);
      }
    }
    return result;
  }
};

}  // namespace tensord::core::cuda
