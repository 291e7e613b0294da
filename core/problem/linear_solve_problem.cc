#include "core/problem/linear_solve_problem.h"

#include <utility>

#include "core/ops/operators.h"

namespace tensord::core {
namespace {

/// Of a real matrix.
double FlopsOfOne(const LinearSolveProblem& p) {
  const auto n = static_cast<double>(ElementCount(p.columns));
  const auto m = static_cast<double>(ElementCount(p.sides));
  if (p.is_exponential()) return 56 * n * n * n / 3;
  switch (p.structure) {
    case MatrixStructure::kGeneral:
    case MatrixStructure::kHermitian: return 2 * n * n * n / 3 + 2 * m * n * n;
    case MatrixStructure::kPositiveDefinite:
      return n * n * n / 3 + 2 * m * n * n;
    case MatrixStructure::kLowerTriangular:
    case MatrixStructure::kUpperTriangular: return m * n * n;
  }
  __builtin_unreachable();
}

}  // namespace

LinearSolveProblem Canonicalize(const LinearSolveDesc& desc) {
  using P = LinearSolveProblem;
  const OperandDesc* const a = &desc.a;
  const OperandDesc* const b = desc.b ? &*desc.b : nullptr;
  const OperandDesc* const d = &desc.d;
  const LinearSolveModes modes = *GroupModes(desc.function, *a, b, d->modes);
  const bool is_complex = IsComplex(a->element_type);
  P problem{
      .function = desc.function,
      .structure = desc.structure,
      .has_unit_diagonal = desc.has_unit_diagonal,
      .has_b = b != nullptr,
      .conj_a = is_complex && a->unary == UnaryOperator::kConj,
      .conj_b = is_complex && b != nullptr && b->unary == UnaryOperator::kConj,
      .type = a->element_type,
      .batch = {},
      .rows = {},
      .columns = {},
      .sides = {}};
  LoopModes<3> batch;
  for (const Mode mode : modes.batch) {
    batch.push_back(
        {a->layout.extents[PositionOf(mode, a->modes)],
         {StrideAlong(a, mode), StrideAlong(b, mode), StrideAlong(d, mode)}});
  }
  problem.batch = Canonical(std::move(batch), P::kBatchA);
  // d has all columns and sides, a all rows, and columns of exponentials.
  const auto in_order = [&](const Modes& own, const OperandDesc* first,
                            const OperandDesc* second) {
    const OperandDesc* const whole = second == d ? d : a;
    LoopModes<2> loops;
    for (size_t i = own.size(); i-- > 0;) {  // the last one is fastest
      loops.push_back(
          {whole->layout.extents[PositionOf(own[i], whole->modes)],
           {StrideAlong(first, own[i]), StrideAlong(second, own[i])}});
    }
    return MergedInOrder(loops);
  };
  if (problem.is_exponential()) {
    // All that is known of it is which elements are read.
    if (desc.structure == MatrixStructure::kPositiveDefinite) {
      problem.structure = MatrixStructure::kHermitian;
    }
    problem.rows = in_order(modes.rows, a, d);
    problem.columns = in_order(modes.columns, a, nullptr);
    problem.sides = in_order(modes.sides, nullptr, d);
    return problem;
  }
  problem.rows = in_order(modes.rows, a, b);
  problem.columns = in_order(modes.columns, a, d);
  problem.sides = in_order(modes.sides, b, d);
  return problem;
}

double FlopCount(const LinearSolveProblem& p) {
  return FlopsOfOne(p) * static_cast<double>(ElementCount(p.batch)) *
         (IsComplex(p.type) ? 4 : 1);
}

}  // namespace tensord::core
