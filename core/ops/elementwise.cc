#include "core/ops/elementwise.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"

namespace tensord::core {
namespace {

absl::Status ValidateInput(const OperandDesc& x, absl::string_view name,
                           const OperandDesc& d) {
  TENSORD_RETURN_IF_ERROR(ValidateOperand(x, name));
  TENSORD_RETURN_IF_ERROR(ValidateContained(
      x, name, d, "d", "; to sum over it, use a reduction or a contraction"));
  return ValidateExtents(x, name, d, "d");
}

/// The same of a, which has a further mode if it is taken from.
absl::Status ValidateFirst(const ElementwiseDesc& desc) {
  if (desc.op_abc != BinaryOperator::kTake) {
    return ValidateInput(desc.a, "a", desc.d);
  }
  TENSORD_RETURN_IF_ERROR(ValidateOperand(desc.a, "a"));
  TENSORD_RETURN_IF_ERROR(ValidateExtents(desc.a, "a", desc.d, "d"));
  const auto further = std::ranges::count_if(
      desc.a.modes, [&](Mode mode) { return !Has(desc.d.modes, mode); });
  if (further == 1) return absl::OkStatus();
  return InvalidArgument("TAKEN_MODE_UNKNOWN", "TAKE takes from the mode of a ",
                         ToString(desc.a.modes), " that d ",
                         ToString(desc.d.modes), " lacks, but there ",
                         further == 0 ? "is none" : "are several",
                         ", wanted one");
}

absl::Status ValidateResultType(const ElementwiseDesc& desc) {
  const ElementType c = desc.c.element_type, d = desc.d.element_type;
  if (IsComparison(desc.op_abc)) {
    if (d == ElementType::kBool) return absl::OkStatus();
    return InvalidArgument("RESULT_NOT_BOOL", NameOf(desc.op_abc),
                           " gives bools, but d is ", NameOf(d),
                           ", wanted bool");
  }
  if (c == d) return absl::OkStatus();
  return InvalidArgument("ADDEND_MISMATCH", "c is ", NameOf(c), " but d is ",
                         NameOf(d), ", wanted the same element type");
}

absl::Status ValidateOperators(const ElementwiseDesc& desc) {
  TENSORD_RETURN_IF_ERROR(ValidateBinary(desc.op_abc, desc.c.element_type));
  const absl::string_view type_b =
      desc.b ? NameOf(desc.b->element_type) : absl::string_view("absent");
  if (desc.op_abc == BinaryOperator::kWhere) {
    if (desc.b && desc.b->element_type == ElementType::kBool) {
      return absl::OkStatus();
    }
    return InvalidArgument("CONDITION_NOT_BOOL",
                           "WHERE chooses by b, which is ", type_b,
                           ", wanted bool");
  }
  if (desc.op_abc == BinaryOperator::kTake) {
    if (desc.b && IsIndex(desc.b->element_type)) return absl::OkStatus();
    return InvalidArgument("INDEX_NOT_INTEGER",
                           "TAKE takes at the indices in b, which is ", type_b,
                           ", wanted an integer type");
  }
  if (!desc.b) return absl::OkStatus();
  if (IsComparison(desc.op_ab) || IsTernary(desc.op_ab)) {
    return InvalidArgument("OPERATOR_MISPLACED", "op_ab is ",
                           NameOf(desc.op_ab), ", which can be op_abc only");
  }
  return ValidateBinary(desc.op_ab, desc.a.element_type);
}

}  // namespace

int ElementwiseDesc::taken() const {
  if (op_abc != BinaryOperator::kTake) return -1;
  const auto at = std::ranges::find_if(
      a.modes, [&](Mode mode) { return !Has(d.modes, mode); });
  return at == a.modes.end() ? -1 : static_cast<int>(at - a.modes.begin());
}

absl::Status Validate(const ElementwiseDesc& desc) {
  TENSORD_RETURN_IF_ERROR(ValidateOperand(desc.d, "d"));
  TENSORD_RETURN_IF_ERROR(ValidateOutput(desc.d));
  TENSORD_RETURN_IF_ERROR(ValidateFirst(desc));
  if (desc.b) TENSORD_RETURN_IF_ERROR(ValidateInput(*desc.b, "b", desc.d));
  TENSORD_RETURN_IF_ERROR(ValidateInput(desc.c, "c", desc.d));
  TENSORD_RETURN_IF_ERROR(ValidateResultType(desc));
  TENSORD_RETURN_IF_ERROR(ValidateOperators(desc));
  const ElementType a = desc.a.element_type;
  return ValidateElementwiseTypes(
      {a, desc.b && !IsTernary(desc.op_abc) ? desc.b->element_type : a,
       desc.c.element_type, desc.compute_type});
}

}  // namespace tensord::core
