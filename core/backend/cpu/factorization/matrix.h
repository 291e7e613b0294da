// Matrices of a factorization, between their tensors and arrays by columns.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/backend/cpu/block/element_math.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/problem/factorization_problem.h"
#include "core/problem/heap_bytes.h"

namespace tensord::core {

/// The type that arithmetic on T runs in where it is not to round.
template <typename T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double,
                                std::complex<double>>;

/// How large each matrix of a problem is.
struct MatrixExtents {
  int64_t rows, columns, inner;

  explicit MatrixExtents(const FactorizationProblem& p)
      : rows(ElementCount(p.rows)),
        columns(ElementCount(p.columns)),
        inner(p.inner_extent) {}
};

/// Calls visit(row, column, offset) for all elements of a matrix, with where
/// they are in the operand of that number in each of the loops. Neighbours come
/// together, whichever way they lie.
template <typename Visit>
void ForEachTiled(const LoopModes<2>& rows, size_t of_row,
                  const LoopModes<2>& columns, size_t of_column,
                  const Visit& visit) {
  constexpr int64_t kTile = 32;
  const LoopMode<2> none{1, {}};
  const LoopMode<2>& row_loop = rows.empty() ? none : rows[0];
  const LoopMode<2>& column_loop = columns.empty() ? none : columns[0];
  const auto outer = [](const LoopModes<2>& loops) {
    return loops.empty() ? loops : LoopModes<2>(loops.begin() + 1, loops.end());
  };
  const LoopModes<2> outer_rows = outer(rows), outer_columns = outer(columns);
  const int64_t row_stride = row_loop.strides[of_row];
  const int64_t column_stride = column_loop.strides[of_column];
  const auto visit_block = [&](int64_t first_row, int64_t first_column,
                               int64_t offset) {
    for (int64_t c = 0; c < column_loop.extent; c += kTile) {
      const int64_t c_end = std::min(c + kTile, column_loop.extent);
      if (CurrentWork::ShouldStop()) return;
      for (int64_t r = 0; r < row_loop.extent; r += kTile) {
        const int64_t r_end = std::min(r + kTile, row_loop.extent);
        for (int64_t j = c; j < c_end; ++j) {
          for (int64_t i = r; i < r_end; ++i) {
            visit(first_row + i, first_column + j,
                  offset + i * row_stride + j * column_stride);
          }
        }
      }
    }
  };
  int64_t column = 0;
  ForEachElement(outer_columns, [&](const auto& column_offset) {
    int64_t row = 0;
    ForEachElement(outer_rows, [&](const auto& row_offset) {
      visit_block(row, column, row_offset[of_row] + column_offset[of_column]);
      row += row_loop.extent;
    });
    column += column_loop.extent;
  });
}

/// Copies the matrix whose first element is at `a` to `matrix`, by columns.
template <typename T, typename Wide>
void LoadMatrix(const FactorizationProblem& p, const T* a, Wide* matrix) {
  using P = FactorizationProblem;
  const int64_t rows = ElementCount(p.rows);
  ForEachTiled(p.rows, P::kA, p.columns, P::kA,
               [&](int64_t row, int64_t column, int64_t offset) {
                 matrix[row + column * rows] = ConvertElement<Wide>(a[offset]);
               });
}

/// The inner mode as a loop over the factor that has that stride.
inline LoopModes<2> InnerLoop(const FactorizationProblem& p, int64_t stride) {
  return {{p.inner_extent, {0, stride}}};
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
void StoreR(const FactorizationProblem& p, const MatrixExtents& extents,
            const Wide* matrix, Wide* phases, T* r) {
  using P = FactorizationProblem;
  for (int64_t k = 0; k < extents.inner; ++k) {
    phases[k] = PhaseOf(matrix[k + k * extents.rows]);
  }
  ForEachTiled(InnerLoop(p, p.inner_stride_right), P::kFactor, p.columns,
               P::kFactor, [&](int64_t k, int64_t column, int64_t offset) {
                 const Wide& from = matrix[k + column * extents.rows];
                 Wide value = 0;
                 if (k < column) value = Conjugated(phases[k]) * from;
                 if (k == column) value = std::abs(from);
                 r[offset] = ConvertElement<T>(value);
               });
}

/// Writes Q, the first columns of `matrix`.
template <typename T, typename Wide>
void StoreQ(const FactorizationProblem& p, const MatrixExtents& extents,
            const Wide* matrix, const Wide* phases, T* q) {
  using P = FactorizationProblem;
  ForEachTiled(p.rows, P::kFactor, InnerLoop(p, p.inner_stride_left),
               P::kFactor, [&](int64_t row, int64_t k, int64_t offset) {
                 q[offset] = ConvertElement<T>(phases[k] *
                                               matrix[row + k * extents.rows]);
               });
}

/// Calls `visit` with a value of the problem's element type.
template <typename Visit>
void VisitMatrixType(ElementType type, const Visit& visit) {
  switch (type) {
    case ElementType::kFloat32: return visit(float{});
    case ElementType::kFloat64: return visit(double{});
    case ElementType::kComplex64: return visit(std::complex<float>{});
    default: return visit(std::complex<double>{});
  }
}

}  // namespace tensord::core
