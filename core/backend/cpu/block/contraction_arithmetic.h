// The arithmetic of contractions: integers that wrap, and conjugates.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/backend/cpu/block/element_math.h"
#include "core/base/element_type.h"
#include "core/ops/operand_rounding.h"

namespace tensord::core {

/// The type that arithmetic on integers T runs in: unsigned, so that it wraps,
/// and not narrower than `int`, to which it would be promoted.
template <typename T>
using WrappingType =
    std::conditional_t<std::is_same_v<T, int64_t>, uint64_t, uint32_t>;

/// The conjugate of complex numbers.
template <typename T>
T ConjugatedIf(bool conjugate, T value) {
  if constexpr (kIsComplex<T>) {
    return conjugate ? std::conj(value) : value;
  } else {
    return value;
  }
}

}  // namespace tensord::core
