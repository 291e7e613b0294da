// Desc -> Problem for every operation.
#include "core/problem/contraction_problem.h"
#include "core/problem/elementwise_problem.h"
#include "core/problem/permutation_problem.h"
#include "core/problem/reduction_problem.h"

namespace tensord::core {
namespace {

bool Has(const OperandDesc& operand, Mode mode) {
  return PositionOf(mode, operand.modes) >= 0;
}

/// Operators that do nothing on `type` are written as IDENTITY.
UnaryOperator CanonicalUnary(UnaryOperator op, ElementType type) {
  const bool keeps_reals =
      op == UnaryOperator::kConj || op == UnaryOperator::kReal;
  return keeps_reals && !IsComplex(type) ? UnaryOperator::kIdentity : op;
}
UnaryOperator CanonicalUnary(const OperandDesc& operand) {
  return CanonicalUnary(operand.unary, operand.element_type);
}
bool IsConj(const OperandDesc& operand) {
  return CanonicalUnary(operand) == UnaryOperator::kConj;
}

}  // namespace

PermutationProblem Canonicalize(const PermutationDesc& desc) {
  PermutationProblem problem{.type_a = desc.a.element_type,
                             .type_d = desc.d.element_type,
                             .compute_type = desc.compute_type,
                             .unary = CanonicalUnary(desc.a),
                             .modes = {}};
  problem.is_move = desc.alpha_is_one && problem.type_a == problem.type_d &&
                    problem.unary == UnaryOperator::kIdentity;
  if (problem.is_move) {
    problem.alignment_bytes =
        std::min({desc.a.alignment_bytes, desc.d.alignment_bytes,
                  PermutationProblem::kWidestAccess});
  }
  LoopModes<2> modes;
  for (size_t i = 0; i < desc.d.modes.size(); ++i) {
    modes.push_back(
        {desc.d.layout.extents[i],
         {StrideAlong(&desc.a, desc.d.modes[i]), desc.d.layout.strides[i]}});
  }
  problem.modes = Canonical(std::move(modes), PermutationProblem::kD);
  return problem;
}

ElementwiseProblem Canonicalize(const ElementwiseDesc& desc) {
  const OperandDesc& a = desc.a;
  const OperandDesc& c = desc.c;
  ElementwiseProblem problem;
  problem.types = {a.element_type,
                   desc.b ? desc.b->element_type : a.element_type,
                   c.element_type, desc.d.element_type};
  problem.unary = {CanonicalUnary(a),
                   desc.b ? CanonicalUnary(*desc.b) : UnaryOperator::kIdentity,
                   CanonicalUnary(c)};
  problem.has_b = desc.b.has_value();
  problem.op_abc = desc.op_abc;
  if (desc.b && !IsTernary(desc.op_abc)) problem.op_ab = desc.op_ab;
  if (const int taken = desc.taken(); taken >= 0) {
    problem.taken = {a.layout.extents[taken], {a.layout.strides[taken]}};
  }
  problem.compute_type = desc.compute_type;
  LoopModes<4> modes;
  for (size_t i = 0; i < desc.d.modes.size(); ++i) {
    const Mode mode = desc.d.modes[i];
    modes.push_back(
        {desc.d.layout.extents[i],
         {StrideAlong(&a, mode), desc.b ? StrideAlong(&*desc.b, mode) : 0,
          StrideAlong(&c, mode), desc.d.layout.strides[i]}});
  }
  problem.modes = Canonical(std::move(modes), ElementwiseProblem::kD);
  return problem;
}

ReductionProblem Canonicalize(const ReductionDesc& desc) {
  const OperandDesc& c = desc.c ? *desc.c : desc.d;
  ReductionProblem problem{.type_a = desc.a.element_type,
                           .type_d = desc.d.element_type,
                           .compute_type = desc.compute_type,
                           .op = desc.sorts() ? BinaryOperator::kAdd : desc.op,
                           .unary_a = CanonicalUnary(desc.a),
                           .unary_c = CanonicalUnary(c),
                           .kept = {},
                           .reduced = {}};
  if (desc.along) problem.sorting = desc.along->sorting;
  LoopModes<3> kept;
  LoopModes<1> reduced;
  for (size_t i = 0; i < desc.a.modes.size(); ++i) {
    const Mode mode = desc.a.modes[i];
    const int64_t extent = desc.a.layout.extents[i];
    const int64_t stride = desc.a.layout.strides[i];
    if (!Has(desc.d, mode)) {
      reduced.push_back({extent, {stride}});
      continue;
    }
    const LoopMode<3> of_d{
        extent, {stride, StrideAlong(&c, mode), StrideAlong(&desc.d, mode)}};
    const bool is_along = desc.along && desc.along->mode == mode &&
                          extent > (desc.sorts() ? 0 : 1);
    if (is_along) {
      problem.along = of_d;
    } else {
      kept.push_back(of_d);
    }
  }
  problem.kept = Canonical(std::move(kept), ReductionProblem::kD);
  problem.reduced = Canonical(std::move(reduced), 0);
  return problem;
}

ContractionProblem Canonicalize(const ContractionDesc& desc) {
  const OperandDesc& a = desc.a;
  const OperandDesc& b = desc.b;
  const OperandDesc& c = desc.c ? *desc.c : desc.d;
  const OperandDesc& d = desc.d;
  ContractionProblem problem;
  problem.type_a = a.element_type;
  problem.type_b = b.element_type;
  problem.type_d = d.element_type;
  problem.compute_type = desc.compute_type;
  problem.conj_a = IsConj(a);
  problem.conj_b = IsConj(b);
  problem.conj_c = IsConj(c);
  problem.alignment_bytes =
      std::min({a.alignment_bytes, b.alignment_bytes, c.alignment_bytes,
                d.alignment_bytes, ContractionProblem::kWidestAccess});
  LoopModes<4> batch;
  LoopModes<3> m, n;
  LoopModes<2> k;
  LoopModes<1> a_only, b_only;
  for (size_t i = 0; i < a.modes.size(); ++i) {
    const Mode mode = a.modes[i];
    const int64_t extent = a.layout.extents[i];
    const int64_t stride = a.layout.strides[i];
    if (Has(b, mode) && Has(d, mode)) {
      batch.push_back({extent,
                       {stride, StrideAlong(&b, mode), StrideAlong(&c, mode),
                        StrideAlong(&d, mode)}});
    } else if (Has(d, mode)) {
      m.push_back(
          {extent, {stride, StrideAlong(&c, mode), StrideAlong(&d, mode)}});
    } else if (Has(b, mode)) {
      k.push_back({extent, {stride, StrideAlong(&b, mode)}});
    } else {
      a_only.push_back({extent, {stride}});
    }
  }
  for (size_t i = 0; i < b.modes.size(); ++i) {
    const Mode mode = b.modes[i];
    const int64_t extent = b.layout.extents[i];
    const int64_t stride = b.layout.strides[i];
    if (Has(a, mode)) continue;
    if (Has(d, mode)) {
      n.push_back(
          {extent, {stride, StrideAlong(&c, mode), StrideAlong(&d, mode)}});
    } else {
      b_only.push_back({extent, {stride}});
    }
  }
  problem.batch = Canonical(std::move(batch), ContractionProblem::kBatchD);
  problem.m = Canonical(std::move(m), ContractionProblem::kFreeD);
  problem.n = Canonical(std::move(n), ContractionProblem::kFreeD);
  problem.k = Canonical(std::move(k), ContractionProblem::kSumA);
  problem.a_only = Canonical(std::move(a_only), 0);
  problem.b_only = Canonical(std::move(b_only), 0);
  return problem;
}

LoopModes<4> KeptModesOf(const ContractionProblem& problem) {
  LoopModes<4> modes = Spread<4>(problem.m, std::array<size_t, 3>{0, 2, 3});
  const LoopModes<4> n = Spread<4>(problem.n, std::array<size_t, 3>{1, 2, 3});
  modes.insert(modes.end(), n.begin(), n.end());
  modes.insert(modes.end(), problem.batch.begin(), problem.batch.end());
  return modes;
}

}  // namespace tensord::core
