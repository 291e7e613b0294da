#pragma once

#include "core/base/element_type.h"

namespace tensord::test {

// Short names of element types.
inline constexpr auto kBf16 = core::ElementType::kBfloat16;
inline constexpr auto kC128 = core::ElementType::kComplex128;
inline constexpr auto kC64 = core::ElementType::kComplex64;
inline constexpr auto kF16 = core::ElementType::kFloat16;
inline constexpr auto kF32 = core::ElementType::kFloat32;
inline constexpr auto kF64 = core::ElementType::kFloat64;
inline constexpr auto kI32 = core::ElementType::kInt32;

}  // namespace tensord::test
