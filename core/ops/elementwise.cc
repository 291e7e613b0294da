#include "core/ops/elementwise.h"

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

bool IsWhere(const ElementwiseDesc& desc) {
  return desc.op_abc == BinaryOperator::kWhere;
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
  if (IsWhere(desc)) {
    if (desc.b && desc.b->element_type == ElementType::kBool) {
      return absl::OkStatus();
    }
    return InvalidArgument(
        "CONDITION_NOT_BOOL", "WHERE chooses by b, which is ",
        desc.b ? NameOf(desc.b->element_type) : absl::string_view("absent"),
        ", wanted bool");
  }
  if (!desc.b) return absl::OkStatus();
  if (IsComparison(desc.op_ab) || desc.op_ab == BinaryOperator::kWhere) {
    return InvalidArgument("OPERATOR_MISPLACED", "op_ab is ",
                           NameOf(desc.op_ab), ", which can be op_abc only");
  }
  return ValidateBinary(desc.op_ab, desc.a.element_type);
}

}  // namespace

absl::Status Validate(const ElementwiseDesc& desc) {
  TENSORD_RETURN_IF_ERROR(ValidateOperand(desc.d, "d"));
  TENSORD_RETURN_IF_ERROR(ValidateOutput(desc.d));
  TENSORD_RETURN_IF_ERROR(ValidateInput(desc.a, "a", desc.d));
  if (desc.b) TENSORD_RETURN_IF_ERROR(ValidateInput(*desc.b, "b", desc.d));
  TENSORD_RETURN_IF_ERROR(ValidateInput(desc.c, "c", desc.d));
  TENSORD_RETURN_IF_ERROR(ValidateResultType(desc));
  TENSORD_RETURN_IF_ERROR(ValidateOperators(desc));
  const ElementType a = desc.a.element_type;
  return ValidateElementwiseTypes(
      {a, desc.b && !IsWhere(desc) ? desc.b->element_type : a,
       desc.c.element_type, desc.compute_type});
}

}  // namespace tensord::core
