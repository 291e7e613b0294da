// Operators as functions on blocks of elements.
#pragma once

#include <cstdint>

#include "core/base/element_type.h"
#include "core/ops/operators.h"

namespace tensord::core {

// T is a type that VisitComputeElement() gives.

/// x[i] = op(x[i])
template <typename T>
using UnaryBlock = void (*)(T* x, int64_t count);

/// out[i] = op(x[i], y[i]); out may be x or y.
template <typename T>
using BinaryBlock = void (*)(const T* x, const T* y, T* out, int64_t count);

/// The operator on blocks, or null for one that changes nothing.
template <typename T>
UnaryBlock<T> FindUnary(UnaryOperator op);

/// Requires  ValidateBinary() accepts op for T; op is not WHERE.
template <typename T>
BinaryBlock<T> FindBinary(BinaryOperator op);

/// Rounds to the precision of `compute`; null when T is no more precise.
template <typename T>
UnaryBlock<T> FindRounding(ComputeType compute);

/// x[i] = factor * x[i]
template <typename T>
void Scale(T factor, T* x, int64_t count);

/// out[i] = condition[i] != 0 ? x[i] : z[i]; out may be any of them.
template <typename T>
void Choose(const T* condition, const T* x, const T* z, T* out, int64_t count);

/// out[i] = op over row of x[row * width + i], i in [0, width), combined in a
/// tree whose shape depends on the counts alone.
///
/// Requires  row_count > 0; room for row_count * width elements at out.
/// Aliasing  out may be x.
template <typename T>
void CombineRows(BinaryOperator op, const T* x, int64_t row_count,
                 int64_t width, T* out);

}  // namespace tensord::core
