// What an element-wise operation asks for.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "core/base/element_type.h"
#include "core/ops/operand.h"

namespace tensord::core {

/// Trinary, with b:
///   d = op_abc(op_ab(alpha * ua(a), beta * ub(b)), gamma * uc(c))
/// Binary, without b:
///   d = op_abc(alpha * ua(a), gamma * uc(c))
///
/// A comparison as op_abc gives d of bool. WHERE as op_abc wants b of bool and
/// ignores op_ab:
///   d = beta * ub(b) ? alpha * ua(a) : gamma * uc(c)
/// TAKE as op_abc wants b of an integer type and ignores op_ab, too. Its a has
/// one mode that d lacks, the one that is taken from, and b says where:
///   d = alpha * ua(a at beta * ub(b))
/// Indices below 0 count from the mode's end. For those that are not in it
/// gamma * uc(c) is taken, and with gamma == 0 the operation is refused.
///
/// Operands have their modes in any order. A mode of d that an input lacks is
/// broadcast. A term whose factor is zero is the number zero: its operand is
/// not read and its operator is not applied.
struct ElementwiseDesc {
  OperandDesc a;
  std::optional<OperandDesc> b;
  OperandDesc c;
  OperandDesc d;
  /// Ignored without b, and by WHERE and TAKE.
  BinaryOperator op_ab = BinaryOperator::kAdd;
  BinaryOperator op_abc = BinaryOperator::kAdd;
  ComputeType compute_type = ComputeType::kFloat32;

  bool operator==(const ElementwiseDesc&) const = default;

  /// Of TAKE, where a has the mode that is taken from; -1: nowhere.
  int taken() const;
};

/// Errors  INVALID_ARGUMENT: modes, extents, strides or operators that do not
///         fit; c and d of different types; comparisons, WHERE and TAKE
///         elsewhere than in op_abc, or without their bools and indices.
///         UNIMPLEMENTED: a row that the type table lacks.
absl::Status Validate(const ElementwiseDesc& desc);

}  // namespace tensord::core
