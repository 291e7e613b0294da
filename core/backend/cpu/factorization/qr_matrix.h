// Matrices of a factorization, between their tensors and arrays by columns.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "core/backend/cpu/block/element_math.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/problem/factorization_problem.h"
#include "core/problem/heap_bytes.h"

namespace tensord::core {

/// How large each matrix of a problem is.
struct QrExtents {
  int64_t rows, columns, inner;

  explicit QrExtents(const FactorizationProblem& p)
      : rows(ElementCount(p.rows)),
        columns(ElementCount(p.columns)),
        inner(p.inner_extent) {}
};

/// Copies the matrix whose first element is at `a` to `matrix`, by columns.
template <typename T, typename Wide>
void LoadMatrix(const FactorizationProblem& p, const T* a, Wide* matrix) {
  using P = FactorizationProblem;
  ForEachElement(p.columns, [&](const auto& column) {
    ForEachElement(p.rows, [&](const auto& row) {
      *matrix++ = ConvertElement<Wide>(a[column[P::kA] + row[P::kA]]);
    });
  });
}

/// x of absolute value 1 with d = x * |d|.
template <typename Wide>
Wide PhaseOf(Wide d) {
  const auto size = std::abs(d);
  return size == 0 ? Wide(1) : d / size;
}

template <typename Wide>
Wide Conjugated(Wide x) {
  if constexpr (std::is_floating_point_v<Wide>) {
    return x;
  } else {
    return std::conj(x);
  }
}

/// Writes R, at and above the diagonal of `matrix`, and zeros below. Rows are
/// multiplied so that the diagonal is real and not negative; what columns of Q
/// are to be multiplied by goes to `phases` (k).
template <typename T, typename Wide>
void StoreR(const FactorizationProblem& p, const QrExtents& extents,
            const Wide* matrix, Wide* phases, T* r) {
  using P = FactorizationProblem;
  for (int64_t k = 0; k < extents.inner; ++k) {
    phases[k] = PhaseOf(matrix[k + k * extents.rows]);
  }
  int64_t column = 0;
  ForEachElement(p.columns, [&](const auto& offsets) {
    const Wide* const from = matrix + column * extents.rows;
    T* const to = r + offsets[P::kFactor];
    for (int64_t k = 0; k < extents.inner; ++k) {
      Wide value = 0;
      if (k < column) value = Conjugated(phases[k]) * from[k];
      if (k == column) value = std::abs(from[k]);
      to[k * p.inner_stride_r] = ConvertElement<T>(value);
    }
    ++column;
  });
}

/// Writes Q, the first columns of `matrix`.
template <typename T, typename Wide>
void StoreQ(const FactorizationProblem& p, const QrExtents& extents,
            const Wide* matrix, const Wide* phases, T* q) {
  using P = FactorizationProblem;
  for (int64_t k = 0; k < extents.inner; ++k) {
    const Wide* from = matrix + k * extents.rows;
    T* const to = q + k * p.inner_stride_q;
    ForEachElement(p.rows, [&](const auto& row) {
      to[row[P::kFactor]] = ConvertElement<T>(phases[k] * *from++);
    });
  }
}

/// Calls `visit` with a value of the problem's element type.
template <typename Visit>
void VisitFactorizationType(ElementType type, const Visit& visit) {
  switch (type) {
    case ElementType::kFloat32: return visit(float{});
    case ElementType::kFloat64: return visit(double{});
    case ElementType::kComplex64: return visit(std::complex<float>{});
    default: return visit(std::complex<double>{});
  }
}

}  // namespace tensord::core
