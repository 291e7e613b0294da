// Vector loops over contiguous elements, compiled for each instruction set and
// chosen at run time.
#pragma once

#include <cstdint>

#include "core/base/half.h"

namespace tensord::core {

// All of these
//   Threads   safe for concurrent use.
//   Aliasing  arrays may be equal, but not overlap otherwise.

// T is float or double; of AddBlock() also int8_t to int64_t.

// x[i] = op(x[i])
template <typename T>
void SqrtBlock(T* x, int64_t count);
template <typename T>
void RcpBlock(T* x, int64_t count);
template <typename T>
void ReluBlock(T* x, int64_t count);
template <typename T>
void AbsBlock(T* x, int64_t count);
template <typename T>
void NegBlock(T* x, int64_t count);
template <typename T>
void CeilBlock(T* x, int64_t count);
template <typename T>
void FloorBlock(T* x, int64_t count);
template <typename T>
void ScaleBlock(T factor, T* x, int64_t count);

// out[i] = op(x[i], y[i]); MAX and MIN give NaN when either is, comparisons 1
// and 0.
template <typename T>
void AddBlock(const T* x, const T* y, T* out, int64_t count);
template <typename T>
void MulBlock(const T* x, const T* y, T* out, int64_t count);
template <typename T>
void MaxBlock(const T* x, const T* y, T* out, int64_t count);
template <typename T>
void MinBlock(const T* x, const T* y, T* out, int64_t count);
template <typename T>
void DivBlock(const T* x, const T* y, T* out, int64_t count);
template <typename T>
void EqualBlock(const T* x, const T* y, T* out, int64_t count);
template <typename T>
void NotEqualBlock(const T* x, const T* y, T* out, int64_t count);
template <typename T>
void LessBlock(const T* x, const T* y, T* out, int64_t count);
template <typename T>
void LessEqualBlock(const T* x, const T* y, T* out, int64_t count);
template <typename T>
void GreaterBlock(const T* x, const T* y, T* out, int64_t count);
template <typename T>
void GreaterEqualBlock(const T* x, const T* y, T* out, int64_t count);

// out[i] = condition[i] != 0 ? x[i] : z[i]
template <typename T>
void ChooseBlock(const T* condition, const T* x, const T* z, T* out,
                 int64_t count);

// All of x[0 .. count) combined, in a tree whose shape depends on count alone.
template <typename T>
T SumOf(const T* x, int64_t count);
template <typename T>
T MaxOf(const T* x, int64_t count);
template <typename T>
T MinOf(const T* x, int64_t count);

// Conversions, to nearest even. NaN stays NaN.
void ConvertBlock(const Half* from, float* to, int64_t count);
void ConvertBlock(const float* from, Half* to, int64_t count);
void ConvertBlock(const Bfloat16* from, float* to, int64_t count);
void ConvertBlock(const float* from, Bfloat16* to, int64_t count);
void ConvertBlock(const float* from, double* to, int64_t count);
void ConvertBlock(const double* from, float* to, int64_t count);

}  // namespace tensord::core
