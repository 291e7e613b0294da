// A factorization in canonical form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/base/element_type.h"
#include "core/ops/factorization.h"
#include "core/problem/loop_modes.h"

namespace tensord::core {

/// a[batch,row,column] = sum_k q[batch,row,k] * r[batch,k,column].
///
/// Invariant  batch and rows are Canonical() led by a; columns keep the order
///            that numbers them, fastest first, and are merged where that
///            changes nothing. Loops of extent 1 are left out; where one has
///            extent 0, inner_extent is 0 or batch has no elements.
struct FactorizationProblem {
  static constexpr size_t kA = 0, kFactor = 1;  // rows: q, columns: r
  static constexpr size_t kBatchA = 0, kBatchQ = 1, kBatchR = 2;

  FactorizationMethod method = FactorizationMethod::kQr;
  ElementType type = ElementType::kFloat32;
  LoopModes<3> batch;
  LoopModes<2> rows;
  LoopModes<2> columns;
  int64_t inner_extent = 0;
  int64_t inner_stride_q = 0;
  int64_t inner_stride_r = 0;

  bool operator==(const FactorizationProblem&) const = default;

  template <typename Self, typename Visit>
  static decltype(auto) VisitFields(Self& p, Visit&& visit) {
    return visit(p.method, p.type, p.batch, p.rows, p.columns, p.inner_extent,
                 p.inner_stride_q, p.inner_stride_r);
  }
};

/// Requires Validate(desc).ok().
FactorizationProblem Canonicalize(const FactorizationDesc& desc);

/// Merges loops, fastest first, that follow each other evenly in both operands.
/// The order of what they visit stays.
LoopModes<2> MergedInOrder(const LoopModes<2>& loops);

/// What finding R and forming Q takes, 2 k^2 (max(m, n) + m) - 4/3 k^3 for one
/// matrix of m x n with k = min(m, n), see Golub and Van Loan, Matrix
/// Computations, 5.2; four times as much of complex numbers.
double FlopCount(const FactorizationProblem& p);

}  // namespace tensord::core
