// What a reduction asks for.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "core/base/element_type.h"
#include "core/ops/operand.h"

namespace tensord::core {

/// d = alpha * reduce(unary(a)) + beta * unary(c), over the modes of a that d
/// lacks. Nothing to reduce gives the operator's identity: ADD 0, MUL 1, MAX
/// the lowest and MIN the highest value of the type (an infinity where it has
/// one).
struct ReductionDesc {
  OperandDesc a;
  std::optional<OperandDesc> c;
  OperandDesc d;
  BinaryOperator op = BinaryOperator::kAdd;
  ComputeType compute_type = ComputeType::kFloat32;

  bool operator==(const ReductionDesc&) const = default;
};

/// Errors  INVALID_ARGUMENT: modes, extents, strides or operators that do not
///         fit; c unlike d. UNIMPLEMENTED: a row that the type table lacks.
absl::Status Validate(const ReductionDesc& desc);

}  // namespace tensord::core
