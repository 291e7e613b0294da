// One tensor in its role in an operation.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/base/element_type.h"
#include "core/base/layout.h"
#include "core/ops/operators.h"

namespace tensord::core {

/// The label of a mode: any int32, compared and never computed with.
using Mode = int32_t;
using Modes = absl::InlinedVector<Mode, 8>;

/// A tensor as an operation sees it: layout.extents[i] belongs to modes[i].
struct OperandDesc {
  ElementType element_type = ElementType::kFloat32;
  Layout layout;
  Modes modes;  // (mode)
  UnaryOperator unary = UnaryOperator::kIdentity;
  /// What the address of the first element will be a multiple of, a power of
  /// two. Planning goes by it; at other addresses execution is still right, but
  /// may be slower.
  int64_t alignment_bytes = 256;

  bool operator==(const OperandDesc&) const = default;
};

/// Position of `mode` in `modes`, or -1.
int PositionOf(Mode mode, const Modes& modes);

/// `mode` for a message: 'k' or '×' for the code point of a label that einsum
/// takes, the number for any other.
std::string ToString(Mode mode);
std::string ToString(const Modes& modes);

/// OK when `operand` makes sense by itself.
///
/// Errors  INVALID_ARGUMENT: what ValidateLayout() refuses, another number of
///         modes than of extents, a mode twice, a unary operator that its type
///         does not have. `what` is the operand's letter.
absl::Status ValidateOperand(const OperandDesc& operand,
                             absl::string_view what);

/// OK when every mode that both operands have has one extent.
///
/// Errors  INVALID_ARGUMENT: names the mode and both extents.
absl::Status ValidateExtents(const OperandDesc& x, absl::string_view x_name,
                             const OperandDesc& y, absl::string_view y_name);

/// OK when `inner`'s modes all are modes of `outer`.
///
/// Errors  INVALID_ARGUMENT: names the mode; `remedy` says what to do instead.
absl::Status ValidateContained(const OperandDesc& inner,
                               absl::string_view inner_name,
                               const OperandDesc& outer,
                               absl::string_view outer_name,
                               absl::string_view remedy);

/// OK when d can be written: its layout is injective and it has no operator.
absl::Status ValidateOutput(const OperandDesc& d);

/// OK when c can be added to d: the same modes in the same order with the same
/// extents, and the same element type. Strides may differ.
absl::Status ValidateAddend(const OperandDesc& c, const OperandDesc& d);

}  // namespace tensord::core
