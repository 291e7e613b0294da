#include "core/ops/factorization.h"

#include <algorithm>
#include <optional>

#include "absl/strings/string_view.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

bool Has(const Modes& modes, Mode mode) { return PositionOf(mode, modes) >= 0; }

absl::Status ValidateTypes(const FactorizationDesc& desc) {
  const ElementType type = desc.a.element_type;
  const bool is_supported =
      type == ElementType::kFloat32 || type == ElementType::kFloat64 ||
      type == ElementType::kComplex64 || type == ElementType::kComplex128;
  if (!is_supported) {
    return Unimplemented("TYPES_NOT_SUPPORTED", "a is ", NameOf(type),
                         ", wanted float32, float64, complex64 or complex128; "
                         "convert it");
  }
  const bool q_differs = desc.q.element_type != type;
  if (!q_differs && desc.r.element_type == type) return absl::OkStatus();
  return Unimplemented(
      "TYPES_NOT_SUPPORTED", q_differs ? "q is " : "r is ",
      NameOf(q_differs ? desc.q.element_type : desc.r.element_type),
      " but a is ", NameOf(type), ", wanted the same element type");
}

absl::Status ValidateOperator(const OperandDesc& operand,
                              absl::string_view name) {
  if (operand.unary == UnaryOperator::kIdentity) return absl::OkStatus();
  return InvalidArgument("OPERATOR_IN_FACTORIZATION", name, " has operator ",
                         NameOf(operand.unary),
                         ", wanted none in a factorization");
}

absl::Status ValidateFactor(const OperandDesc& factor, absl::string_view name) {
  TENSORD_RETURN_IF_ERROR(ValidateOperand(factor, name));
  TENSORD_RETURN_IF_ERROR(ValidateOperator(factor, name));
  if (IsInjective(factor.layout)) return absl::OkStatus();
  return InvalidArgument("OUTPUT_OVERLAPS_ITSELF", name, " with extents ",
                         ToString(factor.layout.extents), " and strides ",
                         ToString(factor.layout.strides),
                         " has elements that share an address");
}

/// OK when each mode of a is in q or r, and each of theirs in a or in the
/// other.
absl::Status ValidateModes(const OperandDesc& a, const Modes& q,
                           const Modes& r) {
  for (const Mode mode : a.modes) {
    if (Has(q, mode) || Has(r, mode)) continue;
    return InvalidArgument("MODE_NOT_IN_OUTPUT", "mode ", ToString(mode),
                           " of a ", ToString(a.modes), " is in neither q ",
                           ToString(q), " nor r ", ToString(r));
  }
  int inner_count = 0;
  for (const Mode mode : q) {
    if (Has(a.modes, mode)) continue;
    if (!Has(r, mode)) {
      return InvalidArgument("MODE_NOT_IN_INPUT", "mode ", ToString(mode),
                             " of q ", ToString(q), " is neither in a ",
                             ToString(a.modes), " nor in r ", ToString(r));
    }
    ++inner_count;
  }
  for (const Mode mode : r) {
    if (Has(a.modes, mode) || Has(q, mode)) continue;
    return InvalidArgument("MODE_NOT_IN_INPUT", "mode ", ToString(mode),
                           " of r ", ToString(r), " is neither in a ",
                           ToString(a.modes), " nor in q ", ToString(q));
  }
  if (inner_count == 1) return absl::OkStatus();
  return InvalidArgument("INNER_MODE_COUNT", "q ", ToString(q), " and r ",
                         ToString(r), " share ", inner_count,
                         " modes that a lacks, wanted one");
}

}  // namespace

absl::string_view NameOf(FactorizationMethod method) {
  switch (method) {
    case FactorizationMethod::kQr: return "qr";
  }
  __builtin_unreachable();
}

absl::StatusOr<int64_t> InnerExtent(const OperandDesc& a, const Modes& q,
                                    const Modes& r) {
  TENSORD_RETURN_IF_ERROR(ValidateModes(a, q, r));
  std::optional<int64_t> rows = 1, columns = 1;
  for (size_t i = 0; i < a.modes.size(); ++i) {
    const bool in_q = Has(q, a.modes[i]), in_r = Has(r, a.modes[i]);
    if (in_q && in_r) continue;
    std::optional<int64_t>& side = in_q ? rows : columns;
    if (side) side = CheckedMultiply(*side, a.layout.extents[i]);
  }
  if (rows && columns) return std::min(*rows, *columns);
  return InvalidArgument("MATRIX_TOO_LARGE", "a with extents ",
                         ToString(a.layout.extents),
                         " has more rows or columns than int64 counts");
}

absl::Status Validate(const FactorizationDesc& desc) {
  TENSORD_RETURN_IF_ERROR(ValidateOperand(desc.a, "a"));
  TENSORD_RETURN_IF_ERROR(ValidateOperator(desc.a, "a"));
  TENSORD_RETURN_IF_ERROR(ValidateFactor(desc.q, "q"));
  TENSORD_RETURN_IF_ERROR(ValidateFactor(desc.r, "r"));
  TENSORD_ASSIGN_OR_RETURN(const int64_t inner,
                           InnerExtent(desc.a, desc.q.modes, desc.r.modes));
  TENSORD_RETURN_IF_ERROR(ValidateExtents(desc.a, "a", desc.q, "q"));
  TENSORD_RETURN_IF_ERROR(ValidateExtents(desc.a, "a", desc.r, "r"));
  TENSORD_RETURN_IF_ERROR(ValidateExtents(desc.q, "q", desc.r, "r"));
  for (size_t i = 0; i < desc.q.modes.size(); ++i) {
    const Mode mode = desc.q.modes[i];
    if (Has(desc.a.modes, mode) || desc.q.layout.extents[i] == inner) continue;
    return InvalidArgument(
        "MODE_EXTENT_MISMATCH", "inner mode ", ToString(mode), " has extent ",
        desc.q.layout.extents[i],
        ", wanted that of the matrix's shorter side, ", inner);
  }
  return ValidateTypes(desc);
}

}  // namespace tensord::core
