// A permutation in canonical form.
#pragma once

#include <cstdint>
#include <utility>

#include "core/base/element_type.h"
#include "core/ops/permutation.h"
#include "core/problem/loop_modes.h"

namespace tensord::core {

/// d = alpha * unary(a) over `modes`. Labels and the order of modes are gone:
/// requests that differ in those only compare equal.
///
/// Invariant  modes are Canonical() led by d, so modes[0] is d's fastest.
struct PermutationProblem {
  static constexpr size_t kA = 0, kD = 1;  // LoopMode::strides

  ElementType type_a = ElementType::kFloat32;
  ElementType type_d = ElementType::kFloat32;
  ComputeType compute_type = ComputeType::kFloat32;
  UnaryOperator unary = UnaryOperator::kIdentity;
  /// Bits are moved: the types are equal, there is no operator, and alpha is 1.
  bool is_move = false;
  /// What both operands' addresses are multiples of; at most kWidestAccess.
  int64_t alignment_bytes = 1;
  LoopModes<2> modes;

  /// Wider accesses do not exist on any device.
  static constexpr int64_t kWidestAccess = 16;

  bool operator==(const PermutationProblem&) const = default;

  template <typename Self, typename Visit>
  static decltype(auto) VisitFields(Self& p, Visit&& visit) {
    return visit(p.type_a, p.type_d, p.compute_type, p.unary, p.is_move,
                 p.alignment_bytes, p.modes);
  }
};

/// Requires Validate(desc).ok().
PermutationProblem Canonicalize(const PermutationDesc& desc);

}  // namespace tensord::core
