// Vector loops over contiguous elements, compiled for each instruction set and
// chosen at run time.
#pragma once

#include <cstdint>

#include "core/base/half.h"

namespace tensord::core {

// All of these
//   Threads   safe for concurrent use.
//   Aliasing  arrays may be equal, but not overlap otherwise.

// x[i] = op(x[i])
void SqrtBlock(float* x, int64_t count);
void SqrtBlock(double* x, int64_t count);
void RcpBlock(float* x, int64_t count);
void RcpBlock(double* x, int64_t count);
void ReluBlock(float* x, int64_t count);
void ReluBlock(double* x, int64_t count);
void AbsBlock(float* x, int64_t count);
void AbsBlock(double* x, int64_t count);
void NegBlock(float* x, int64_t count);
void NegBlock(double* x, int64_t count);
void CeilBlock(float* x, int64_t count);
void CeilBlock(double* x, int64_t count);
void FloorBlock(float* x, int64_t count);
void FloorBlock(double* x, int64_t count);
void ScaleBlock(float factor, float* x, int64_t count);
void ScaleBlock(double factor, double* x, int64_t count);

// out[i] = op(x[i], y[i]); MAX and MIN give NaN when either is.
void AddBlock(const float* x, const float* y, float* out, int64_t count);
void AddBlock(const double* x, const double* y, double* out, int64_t count);
void AddBlock(const int8_t* x, const int8_t* y, int8_t* out, int64_t count);
void AddBlock(const int16_t* x, const int16_t* y, int16_t* out, int64_t count);
void AddBlock(const int32_t* x, const int32_t* y, int32_t* out, int64_t count);
void AddBlock(const int64_t* x, const int64_t* y, int64_t* out, int64_t count);
void MulBlock(const float* x, const float* y, float* out, int64_t count);
void MulBlock(const double* x, const double* y, double* out, int64_t count);
void MaxBlock(const float* x, const float* y, float* out, int64_t count);
void MaxBlock(const double* x, const double* y, double* out, int64_t count);
void MinBlock(const float* x, const float* y, float* out, int64_t count);
void MinBlock(const double* x, const double* y, double* out, int64_t count);

// All of x[0 .. count) combined, in a tree whose shape depends on count alone.
float SumOf(const float* x, int64_t count);
double SumOf(const double* x, int64_t count);
float MaxOf(const float* x, int64_t count);
double MaxOf(const double* x, int64_t count);
float MinOf(const float* x, int64_t count);
double MinOf(const double* x, int64_t count);

// Conversions, to nearest even. NaN stays NaN.
void ConvertBlock(const Half* from, float* to, int64_t count);
void ConvertBlock(const float* from, Half* to, int64_t count);
void ConvertBlock(const Bfloat16* from, float* to, int64_t count);
void ConvertBlock(const float* from, Bfloat16* to, int64_t count);
void ConvertBlock(const float* from, double* to, int64_t count);
void ConvertBlock(const double* from, float* to, int64_t count);

}  // namespace tensord::core
