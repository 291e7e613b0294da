#include "core/ops/operand.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"

namespace tensord::core {

int PositionOf(Mode mode, const Modes& modes) {
  const auto at = std::find(modes.begin(), modes.end(), mode);
  return at == modes.end() ? -1 : static_cast<int>(at - modes.begin());
}

std::optional<int64_t> ElementsAlong(const OperandDesc& operand,
                                     const Modes& modes) {
  std::optional<int64_t> count = 1;
  for (const Mode mode : modes) {
    if (!count) break;
    const int at = PositionOf(mode, operand.modes);
    count = CheckedMultiply(*count, operand.layout.extents[at]);
  }
  return count;
}

namespace {

/// Whether einsum takes the code point for a label, and it can be seen.
bool IsVisibleLabel(Mode mode) {
  constexpr Mode kFirstOfOptEinsum = 0xc0;
  const utf8proc_category_t category = utf8proc_category(mode);
  const bool is_letter =
      category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
  const bool is_number_or_sign =
      category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_SO;
  return is_letter || (mode >= kFirstOfOptEinsum && is_number_or_sign);
}

}  // namespace

std::string ToString(Mode mode) {
  if (!IsVisibleLabel(mode)) return absl::StrCat(mode);
  std::array<char, 4> bytes;
  const auto count = utf8proc_encode_char(
      mode, reinterpret_cast<utf8proc_uint8_t*>(bytes.data()));
  return absl::StrCat("'", absl::string_view(bytes.data(), count), "'");
}

std::string ToString(const Modes& modes) {
  return absl::StrCat("(",
                      absl::StrJoin(modes, ", ",
                                    [](std::string* out, Mode mode) {
                                      absl::StrAppend(out, ToString(mode));
                                    }),
                      ")");
}

absl::Status ValidateOperand(const OperandDesc& operand,
                             absl::string_view what) {
  TENSORD_RETURN_IF_ERROR(
      ValidateLayout(operand.layout, SizeOf(operand.element_type), what));
  if (operand.modes.size() != operand.layout.extents.size()) {
    return InvalidArgument(
        "MODE_COUNT_MISMATCH", what, " has ", operand.layout.extents.size(),
        " extents, but its modes are ", ToString(operand.modes));
  }
  for (size_t i = 0; i < operand.modes.size(); ++i) {
    if (PositionOf(operand.modes[i], operand.modes) != static_cast<int>(i)) {
      return InvalidArgument("MODE_REPEATED", "mode ",
                             ToString(operand.modes[i]), " occurs twice in ",
                             what, ", wanted each mode once per operand");
    }
  }
  return ValidateUnary(operand.unary, operand.element_type, what);
}

absl::Status ValidateLinear(const OperandDesc& operand, absl::string_view what,
                            absl::string_view where) {
  TENSORD_RETURN_IF_ERROR(ValidateOperand(operand, what));
  if (operand.unary == UnaryOperator::kIdentity ||
      operand.unary == UnaryOperator::kConj) {
    return absl::OkStatus();
  }
  return InvalidArgument("OPERATOR_NOT_LINEAR", "operator ",
                         NameOf(operand.unary), " of ", what,
                         ", wanted IDENTITY or CONJ ", where);
}

absl::Status ValidateMatrixType(const OperandDesc& a) {
  switch (a.element_type) {
    case ElementType::kFloat32:
    case ElementType::kFloat64:
    case ElementType::kComplex64:
    case ElementType::kComplex128: return absl::OkStatus();
    default: break;
  }
  return Unimplemented("TYPES_NOT_SUPPORTED", "a is ", NameOf(a.element_type),
                       ", wanted float32, float64, complex64 or complex128; "
                       "convert it");
}

absl::Status ValidateExtents(const OperandDesc& x, absl::string_view x_name,
                             const OperandDesc& y, absl::string_view y_name) {
  for (size_t i = 0; i < x.modes.size(); ++i) {
    const int j = PositionOf(x.modes[i], y.modes);
    if (j >= 0 && x.layout.extents[i] != y.layout.extents[j]) {
      return InvalidArgument("MODE_EXTENT_MISMATCH", "mode ",
                             ToString(x.modes[i]), " has extent ",
                             x.layout.extents[i], " in ", x_name, " but ",
                             y.layout.extents[j], " in ", y_name);
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateContained(const OperandDesc& inner,
                               absl::string_view inner_name,
                               const OperandDesc& outer,
                               absl::string_view outer_name,
                               absl::string_view remedy) {
  for (const Mode mode : inner.modes) {
    if (PositionOf(mode, outer.modes) < 0) {
      return InvalidArgument("MODE_NOT_IN_OUTPUT", "mode ", ToString(mode),
                             " of ", inner_name, " ", ToString(inner.modes),
                             " is not in ", outer_name, " ",
                             ToString(outer.modes), remedy);
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateOutput(const OperandDesc& d) {
  if (d.unary != UnaryOperator::kIdentity) {
    return InvalidArgument("OPERATOR_ON_OUTPUT", "d has operator ",
                           NameOf(d.unary),
                           ", wanted unary operators on inputs only");
  }
  if (!IsInjective(d.layout)) {
    return InvalidArgument("OUTPUT_OVERLAPS_ITSELF", "d with extents ",
                           ToString(d.layout.extents), " and strides ",
                           ToString(d.layout.strides),
                           " has elements that share an address");
  }
  return absl::OkStatus();
}

absl::Status ValidateAddend(const OperandDesc& c, const OperandDesc& d) {
  if (c.modes != d.modes) {
    return InvalidArgument("ADDEND_MISMATCH", "c has modes ", ToString(c.modes),
                           " but d has ", ToString(d.modes),
                           ", wanted the same modes in the same order");
  }
  if (c.element_type != d.element_type) {
    return InvalidArgument("ADDEND_MISMATCH", "c is ", NameOf(c.element_type),
                           " but d is ", NameOf(d.element_type),
                           ", wanted the same element type");
  }
  return ValidateExtents(c, "c", d, "d");
}

}  // namespace tensord::core
