// What a contraction asks for.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "core/base/element_type.h"
#include "core/ops/operand.h"

namespace tensord::core {

/// d = alpha * sum(unary(a) * unary(b)) + beta * unary(c), over every mode that
/// d lacks. A mode of a, b and d is a batch mode; a mode of one input only that
/// d lacks is summed in that input. No common mode gives the outer product, a d
/// without modes the full contraction.
struct ContractionDesc {
  OperandDesc a;
  OperandDesc b;
  std::optional<OperandDesc> c;
  OperandDesc d;
  ComputeType compute_type = ComputeType::kFloat32;

  bool operator==(const ContractionDesc&) const = default;
};

/// Errors  INVALID_ARGUMENT: modes, extents or strides that do not fit; a mode
///         of d in neither input; c unlike d; an operator other than IDENTITY
///         and CONJ. UNIMPLEMENTED: a row that the type table lacks.
absl::Status Validate(const ContractionDesc& desc);

}  // namespace tensord::core
