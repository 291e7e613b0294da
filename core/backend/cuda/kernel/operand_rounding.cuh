// The rounding of operands to a contraction's compute type, in device code.
#pragma once

#include <cuda_runtime.h>

#include <complex>
#include <cstdint>

#include "core/backend/cuda/kernel/element.cuh"
#include "core/ops/operand_rounding.h"

namespace tensord::core::cuda {

__device__ __forceinline__ float Rounded(OperandRounding rounding, float x) {
  switch (rounding) {
    case OperandRounding::kTf32: return RoundToTf32(x);
    case OperandRounding::kFloat16: return ToFloat(HalfFrom<Half>(x));
    case OperandRounding::kBfloat16: return ToFloat(HalfFrom<Bfloat16>(x));
    default: return x;
  }
}
__device__ __forceinline__ double Rounded(OperandRounding rounding, double x) {
  if (rounding == OperandRounding::kNone) return x;
  return Rounded(rounding, static_cast<float>(x));
}
template <typename R>
__device__ __forceinline__ std::complex<R> Rounded(OperandRounding rounding,
                                                   std::complex<R> x) {
  return {Rounded(rounding, x.real()), Rounded(rounding, x.imag())};
}
__device__ __forceinline__ int64_t Rounded(OperandRounding, int64_t x) {
  return x;
}

template <typename T>
__device__ __forceinline__ T ConjugatedIf(bool conjugates, T x) {
  if constexpr (kIsComplex<T>) {
    return conjugates ? T(x.real(), -x.imag()) : x;
  } else {
    return x;
  }
}

}  // namespace tensord::core::cuda
