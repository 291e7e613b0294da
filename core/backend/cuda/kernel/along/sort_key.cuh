// What elements are sorted by, in device code.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "core/backend/cuda/kernel/element.cuh"
#include "core/ops/operators.h"
#include "core/ops/sort_key.h"

namespace tensord::core::cuda {

/// The key of the element of `type` at `data[offset]`.
__device__ __forceinline__ uint64_t SortKeyAt(const void* data,
                                              ElementType type, Sorting sorting,
                                              int64_t offset) {
  uint64_t key = 0;
  VisitElementType(type, [&](auto zero) {
    using Stored = decltype(zero);
    if constexpr (std::is_same_v<Stored, bool>) {
      // Any byte but 0 is true; reading it as bool would be undefined.
      key = static_cast<const uint8_t*>(data)[offset] != 0 ? 1 : 0;
    } else if constexpr (!kIsComplex<Stored>) {
      key = SortKey(static_cast<const Stored*>(data)[offset]);
    }
  });
  return sorting == Sorting::kDescending ? ~key : key;
}

}  // namespace tensord::core::cuda
