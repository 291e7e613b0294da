// Elements of matrices in workspace, as kernels see them.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>

#include "core/backend/cuda/kernel/element.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/matrix/matrix_tasks.h"

namespace tensord::core::cuda {

inline constexpr uint32_t kThreads = 256;

/// Calls visit with a value of the type.
template <typename Visit>
cudaError_t VisitMatrixType(ElementType type, const Visit& visit) {
  switch (type) {
    case ElementType::kFloat32: return visit(float{});
    case ElementType::kFloat64: return visit(double{});
    case ElementType::kComplex64: return visit(std::complex<float>{});
    default: return visit(std::complex<double>{});
  }
}

template <typename T>
struct Parts {
  using Real = T;
};
template <typename R>
struct Parts<std::complex<R>> {
  using Real = R;
};
template <typename T>
using RealOf = typename Parts<T>::Real;

template <typename T>
__device__ __forceinline__ RealOf<T> RealPart(const T& x) {
  if constexpr (kIsComplex<T>) {
    return x.real();
  } else {
    return x;
  }
}
template <typename T>
__device__ __forceinline__ RealOf<T> ImaginaryPart(const T& x) {
  if constexpr (kIsComplex<T>) {
    return x.imag();
  } else {
    return 0;
  }
}
template <typename T>
__device__ __forceinline__ RealOf<T> Magnitude(const T& x) {
  if constexpr (kIsComplex<T>) {
    return hypot(x.real(), x.imag());
  } else {
    return fabs(x);
  }
}
template <typename T>
__device__ __forceinline__ T Conjugated(const T& x) {
  if constexpr (kIsComplex<T>) {
    return {x.real(), -x.imag()};
  } else {
    return x;
  }
}
template <typename T>
__device__ __forceinline__ T Times(const T& x, const T& y) {
  if constexpr (kIsComplex<T>) {
    return {x.real() * y.real() - x.imag() * y.imag(),
            x.real() * y.imag() + x.imag() * y.real()};
  } else {
    return x * y;
  }
}
template <typename T>
__device__ __forceinline__ T WithPower(const T& x, int power) {
  if constexpr (kIsComplex<T>) {
    return {ldexp(x.real(), power), ldexp(x.imag(), power)};
  } else {
    return ldexp(x, power);
  }
}

/// Where an element stands, and where it lies.
struct Place {
  int64_t matrix, row, column;
  int64_t offset;
};

/// Calls visit(place) for the elements of all matrices.
template <typename Visit>
__device__ __forceinline__ void ForEachPlace(const Matrices& m,
                                             const Visit& visit) {
  const int64_t each = m.rows * m.columns;
  ForEachIndex(m.count * each, [&](int64_t index) {
    const int64_t matrix = index / each, within = index - matrix * each;
    const int64_t column = within / m.rows, row = within - column * m.rows;
    visit(Place{matrix, row, column, matrix * m.stride + within});
  });
}
inline Grid GridFor(const Matrices& m) {
  return GridOf(m.count * m.rows * m.columns, kThreads);
}

}  // namespace tensord::core::cuda
