// An element-wise operation in canonical form.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "core/base/element_type.h"
#include "core/ops/elementwise.h"
#include "core/problem/loop_modes.h"

namespace tensord::core {

/// ElementwiseDesc without labels.
///
/// Invariant  modes are Canonical() led by d. Without b its strides are 0, its
///            type is a's, its operator IDENTITY and op_ab ADD.
struct ElementwiseProblem {
  static constexpr size_t kA = 0, kB = 1, kC = 2, kD = 3;  // strides, types

  std::array<ElementType, 4> types = {};    // a, b, c, d
  std::array<UnaryOperator, 3> unary = {};  // a, b, c
  bool has_b = false;
  BinaryOperator op_ab = BinaryOperator::kAdd;
  BinaryOperator op_abc = BinaryOperator::kAdd;
  ComputeType compute_type = ComputeType::kFloat32;
  LoopModes<4> modes;

  bool operator==(const ElementwiseProblem&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const ElementwiseProblem& p) {
    return H::combine(std::move(h), p.types, p.unary, p.has_b, p.op_ab,
                      p.op_abc, p.compute_type, p.modes);
  }
};

/// Requires Validate(desc).ok().
ElementwiseProblem Canonicalize(const ElementwiseDesc& desc);

}  // namespace tensord::core
