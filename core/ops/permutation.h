// What a permutation asks for.
#pragma once

#include "absl/status/status.h"
#include "core/base/element_type.h"
#include "core/ops/operand.h"

namespace tensord::core {

/// d = alpha * unary(a), with d's modes in any order; of a complex a and a real
/// d the real part. The
/// operator sees what a becomes, but that of floating-point numbers is applied
/// before they become integers. A mode of d that a lacks
/// is broadcast. With alpha == 1, IDENTITY and equal types bits are moved, not
/// numbers: NaN payloads and subnormals arrive unchanged.
struct PermutationDesc {
  OperandDesc a;
  OperandDesc d;
  ComputeType compute_type = ComputeType::kFloat32;
  /// Every execution will have alpha == 1. False when that is not known.
  bool alpha_is_one = false;

  bool operator==(const PermutationDesc&) const = default;
};

/// Errors  INVALID_ARGUMENT: modes, extents, strides or operators that do not
///         fit. UNIMPLEMENTED: a row that the type table lacks.
absl::Status Validate(const PermutationDesc& desc);

}  // namespace tensord::core
