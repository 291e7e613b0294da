// An element-wise operation in canonical form.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "core/base/element_type.h"
#include "core/ops/elementwise.h"
#include "core/ops/type_tables.h"
#include "core/problem/loop_modes.h"

namespace tensord::core {

/// ElementwiseDesc without labels.
///
/// Invariant  modes are Canonical() led by d. Without b its strides are 0, its
///            type is a's, its operator IDENTITY and op_ab ADD; so is op_ab
///            where op_abc is WHERE or TAKE.
struct ElementwiseProblem {
  static constexpr size_t kA = 0, kB = 1, kC = 2, kD = 3;  // strides, types

  std::array<ElementType, 4> types = {};    // a, b, c, d
  std::array<UnaryOperator, 3> unary = {};  // a, b, c
  bool has_b = false;
  BinaryOperator op_ab = BinaryOperator::kAdd;
  BinaryOperator op_abc = BinaryOperator::kAdd;
  ComputeType compute_type = ComputeType::kFloat32;
  LoopModes<4> modes;
  /// Of TAKE the mode of a that is taken from; of others nothing.
  LoopMode<1> taken = {};

  bool operator==(const ElementwiseProblem&) const = default;

  /// The type that terms are computed in.
  ElementType compute_element() const {
    return ComputeElement(types[kA], types[kC], compute_type);
  }

  bool is_take() const { return op_abc == BinaryOperator::kTake; }

  /// All but `taken`: hashes do without, and encoded keys have it behind these.
  template <typename Self, typename Visit>
  static decltype(auto) VisitFields(Self& p, Visit&& visit) {
    return visit(p.types[0], p.types[1], p.types[2], p.types[3], p.unary[0],
                 p.unary[1], p.unary[2], p.has_b, p.op_ab, p.op_abc,
                 p.compute_type, p.modes);
  }
};

/// Requires Validate(desc).ok().
ElementwiseProblem Canonicalize(const ElementwiseDesc& desc);

}  // namespace tensord::core
