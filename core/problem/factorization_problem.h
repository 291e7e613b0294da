// A factorization in canonical form.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/base/element_type.h"
#include "core/ops/factorization.h"
#include "core/problem/loop_modes.h"

namespace tensord::core {

/// a[batch,row,column] = sum_k left[batch,row,k] * values[batch,k] *
/// right[batch,k,column], see FactorizationDesc. What a method lacks has no
/// strides.
///
/// Invariant  the method is not kLq, which is QR of the transposed matrix: its
///            left factor is here the right one. batch is Canonical() led by a;
///            so are rows of QR and SVD. Columns, and rows of the others, keep
///            the order that numbers them, fastest first, and are merged where
///            that changes nothing. Loops of extent 1 are left out; where one
///            has extent 0, inner_extent is 0 or batch has no elements.
///            A sample has more columns than values are kept, and fewer than
///            the matrix has.
struct FactorizationProblem {
  static constexpr size_t kA = 0, kFactor = 1;  // rows: left, columns: right
  static constexpr size_t kBatchA = 0, kBatchLeft = 1, kBatchRight = 2,
                          kBatchValues = 3;

  FactorizationMethod method = FactorizationMethod::kQr;
  ElementType type = ElementType::kFloat32;
  LoopModes<4> batch;
  LoopModes<2> rows;
  LoopModes<2> columns;
  int64_t inner_extent = 0;
  int64_t inner_stride_left = 0;
  int64_t inner_stride_right = 0;
  int64_t inner_stride_values = 0;
  bool has_values = false;
  /// Columns of a random sample, see Sampling; 0: there is none.
  int64_t sampled = 0;
  int64_t power_iterations = 0;

  bool operator==(const FactorizationProblem&) const = default;

  /// Those of a problem without a sample.
  template <typename Self, typename Visit>
  static decltype(auto) VisitPlainFields(Self& p, Visit&& visit) {
    return visit(p.method, p.type, p.batch, p.rows, p.columns, p.inner_extent,
                 p.inner_stride_left, p.inner_stride_right,
                 p.inner_stride_values, p.has_values);
  }
  template <typename Self, typename Visit>
  static decltype(auto) VisitFields(Self& p, Visit&& visit) {
    return VisitPlainFields(p, [&](auto&... plain) {
      return visit(plain..., p.sampled, p.power_iterations);
    });
  }
};

/// Whether rows have an order of their own, that of columns.
inline bool PairsRows(FactorizationMethod method) {
  return method == FactorizationMethod::kEigh ||
         method == FactorizationMethod::kCholesky;
}

/// Left, right and values, as the problem has them; null: there is none.
std::array<const OperandDesc*, 3> FactorsOf(const FactorizationDesc& desc);

/// Requires Validate(desc).ok().
FactorizationProblem Canonicalize(const FactorizationDesc& desc);

/// What a factorization takes by the usual algorithm, see Golub and Van Loan,
/// Matrix Computations, of one matrix of m x n with k = min(m, n) and l =
/// max(m, n): QR 2 k^2 (l + m) - 4/3 k^3 (5.2); SVD 6 l k^2 + 20 k^3 (8.6, by
/// way of a triangular matrix, both factors); EIGH 9 n^3 (8.3); CHOLESKY n^3 /
/// 3 (4.2). Four times as much of complex numbers. A sample is not thought of.
double FlopCount(const FactorizationProblem& p);

/// The same by way of the sample, of p.sampled columns, l: 2 m n l for each of
/// its products, two and two more for each power iteration; 4 (m + n) l^2 for
/// their QRs; 6 n l^2 + 20 l^3 for what is left to decompose and 2 m l^2 for
/// the left factor.
///
/// Requires  p.sampled > 0.
double SampledFlopCount(const FactorizationProblem& p);

}  // namespace tensord::core
