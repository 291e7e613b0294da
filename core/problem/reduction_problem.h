// A reduction in canonical form.
#pragma once

#include <cstdint>
#include <utility>

#include "core/base/element_type.h"
#include "core/ops/reduction.h"
#include "core/ops/type_tables.h"
#include "core/problem/loop_modes.h"

namespace tensord::core {

/// d = alpha * reduce(unary_a(a)) + beta * unary_c(c). a, c and d's types: a
/// has type_a, c and d have type_d.
///
/// Invariant  kept is Canonical() led by d, reduced led by a. Without c its
///            strides are those of d. kept has elements; reduced may have none
///            (one mode of extent 0): then d gets the operator's identity.
///            Along a mode nothing is reduced; op is ADD where it sorts, and
///            the mode's extent above 1 where not. One without elements is a
///            mode of kept.
struct ReductionProblem {
  static constexpr size_t kA = 0, kC = 1, kD = 2;  // strides but of reduced

  ElementType type_a = ElementType::kFloat32;
  ElementType type_d = ElementType::kFloat32;
  ComputeType compute_type = ComputeType::kFloat32;
  BinaryOperator op = BinaryOperator::kAdd;
  UnaryOperator unary_a = UnaryOperator::kIdentity;
  UnaryOperator unary_c = UnaryOperator::kIdentity;
  LoopModes<3> kept;
  LoopModes<1> reduced;
  Sorting sorting = Sorting::kNone;
  LoopMode<3> along = {};  // of ReductionDesc::along; else without elements

  bool operator==(const ReductionProblem&) const = default;

  /// The type that values are computed in.
  ElementType compute_element() const {
    return sorts() ? type_d : ComputeElement(type_a, type_d, compute_type);
  }

  bool is_along() const { return along.extent > 0; }
  bool sorts() const { return sorting != Sorting::kNone; }

  /// Those that a problem along no mode has.
  template <typename Self, typename Visit>
  static decltype(auto) VisitPlainFields(Self& p, Visit&& visit) {
    return visit(p.type_a, p.type_d, p.compute_type, p.op, p.unary_a, p.unary_c,
                 p.kept, p.reduced);
  }
  template <typename Self, typename Visit>
  static decltype(auto) VisitFields(Self& p, Visit&& visit) {
    return visit(p.type_a, p.type_d, p.compute_type, p.op, p.unary_a, p.unary_c,
                 p.kept, p.reduced, p.sorting, p.along);
  }
};

/// Requires Validate(desc).ok().
ReductionProblem Canonicalize(const ReductionDesc& desc);

}  // namespace tensord::core
