// What a reduction asks for.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "core/base/element_type.h"
#include "core/ops/operand.h"

namespace tensord::core {

/// A mode that d keeps, and along which an element of d goes by several of a.
struct Along {
  Mode mode = 0;
  Sorting sorting = Sorting::kNone;

  bool operator==(const Along&) const = default;
};

/// d = alpha * reduce(unary(a)) + beta * unary(c), over the modes of a that d
/// lacks. Nothing to reduce gives the operator's identity: ADD 0, MUL 1, MAX
/// the lowest and MIN the highest value of the type (an infinity where it has
/// one).
///
/// Along a mode, where there is one, no mode is lacking. An element of d is the
/// reduction of those of a from the mode's first index to its own (a cumulative
/// sum, product, maximum or minimum).
///
/// Sorted, it is the index of the element of a that stands there when those
/// along the mode are in order, and `op` counts for nothing: equal ones, -0 and
/// 0 among them, stay as they are to each other, and NaN is above all numbers.
/// Descending is as ascending backwards but for equal ones. Then d, of int64,
/// is computed in integers.
struct ReductionDesc {
  OperandDesc a;
  std::optional<OperandDesc> c;
  OperandDesc d;
  BinaryOperator op = BinaryOperator::kAdd;
  ComputeType compute_type = ComputeType::kFloat32;
  std::optional<Along> along = {};

  bool sorts() const { return along && along->sorting != Sorting::kNone; }

  bool operator==(const ReductionDesc&) const = default;
};

/// Errors  INVALID_ARGUMENT: modes, extents, strides or operators that do not
///         fit; c unlike d; complex numbers are to be sorted. UNIMPLEMENTED: a
///         row that the type table lacks.
absl::Status Validate(const ReductionDesc& desc);

}  // namespace tensord::core
