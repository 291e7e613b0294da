// Linear equations in canonical form.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/element_type.h"
#include "core/ops/linear_solve.h"
#include "core/problem/loop_modes.h"

namespace tensord::core {

/// sum_column a[batch,row,column] * d[batch,column,side] = b[batch,row,side],
/// or d[batch,row,side] = exp(a[batch])[row,side], see LinearSolveDesc.
///
/// Invariant  batch is Canonical() led by a. Rows, columns and sides keep the
///            order that numbers them, fastest first, and are merged where that
///            changes nothing. Loops of extent 1 are left out. Without b, its
///            strides are 0, and there are as many sides as rows. Only complex
///            matrices are conjugated.
struct LinearSolveProblem {
  static constexpr size_t kBatchA = 0, kBatchB = 1, kBatchD = 2;
  // Places in rows: a, b; in columns: a, d; in sides: b, d. Of an exponential
  // in rows: a, d; in columns: a, none; in sides: none, d.
  static constexpr size_t kFirst = 0, kSecond = 1;

  MatrixFunction function = MatrixFunction::kInverse;
  MatrixStructure structure = MatrixStructure::kGeneral;
  bool has_unit_diagonal = false;
  bool has_b = true;
  bool conj_a = false;
  bool conj_b = false;
  ElementType type = ElementType::kFloat32;
  LoopModes<3> batch;
  LoopModes<2> rows;
  LoopModes<2> columns;
  LoopModes<2> sides;

  bool operator==(const LinearSolveProblem&) const = default;

  bool is_exponential() const {
    return function == MatrixFunction::kExponential;
  }
  /// The loops that count d's rows.
  const LoopModes<2>& rows_of_d() const {
    return is_exponential() ? rows : columns;
  }

  /// Without the function.
  template <typename Self, typename Visit>
  static decltype(auto) VisitPlainFields(Self& p, Visit&& visit) {
    return visit(p.structure, p.has_unit_diagonal, p.has_b, p.conj_a, p.conj_b,
                 p.type, p.batch, p.rows, p.columns, p.sides);
  }
  template <typename Self, typename Visit>
  static decltype(auto) VisitFields(Self& p, Visit&& visit) {
    return VisitPlainFields(
        p, [&](auto&... plain) { return visit(p.function, plain...); });
  }
};

/// Requires Validate(desc).ok().
LinearSolveProblem Canonicalize(const LinearSolveDesc& desc);

/// What solving takes, see Golub and Van Loan, Matrix Computations, of each
/// matrix of n rows with m sides: 2 m n^2 and, of a general or Hermitian one,
/// 2/3 n^3 (3.2), of a positive definite one n^3 / 3 (4.2); of a triangle m n^2
/// (3.1). Of an exponential 56/3 n^3: six products, n sides and, which depends
/// on the matrix, two squares (Higham, The Scaling and Squaring Method for the
/// Matrix Exponential Revisited, 2005). Four times as much of complex numbers.
double FlopCount(const LinearSolveProblem& p);

}  // namespace tensord::core
