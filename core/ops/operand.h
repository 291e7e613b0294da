// One tensor in its role in an operation.
#pragma once

#include <cstdint>
#include <optional>
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

inline bool Has(const Modes& modes, Mode mode) {
  return PositionOf(mode, modes) >= 0;
}

/// The stride along a mode; 0: the operand lacks it, or there is none.
inline int64_t StrideAlong(const OperandDesc* operand, Mode mode) {
  if (operand == nullptr) return 0;
  const int at = PositionOf(mode, operand->modes);
  return at < 0 ? 0 : operand->layout.strides[at];
}

/// Elements along modes that `operand` has; nothing: more than int64 counts.
std::optional<int64_t> ElementsAlong(const OperandDesc& operand,
                                     const Modes& modes);

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

/// The same of an operand that enters linearly.
///
/// Errors  also INVALID_ARGUMENT, reason OPERATOR_NOT_LINEAR: an operator other
///         than IDENTITY and CONJ. `where` completes `... wanted IDENTITY or
///         CONJ `.
absl::Status ValidateLinear(const OperandDesc& operand, absl::string_view what,
                            absl::string_view where);

/// OK when `operand` is a, of a type that matrices are solved and factorized
/// in.
///
/// Errors  UNIMPLEMENTED, reason TYPES_NOT_SUPPORTED: it is neither float32,
///         float64, complex64 nor complex128.
absl::Status ValidateMatrixType(const OperandDesc& a);

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
