#include "core/ops/reduction.h"

#include "core/base/status.h"
#include "core/ops/type_tables.h"

namespace tensord::core {
namespace {

/// OK when the mode is one of both operands, which have all modes in common.
absl::Status ValidateAlong(const ReductionDesc& desc) {
  if (!Has(desc.a.modes, desc.along->mode)) {
    return InvalidArgument(
        "MODE_NOT_IN_INPUT", "mode ", ToString(desc.along->mode),
        ", along which d goes, is not in a ", ToString(desc.a.modes));
  }
  return ValidateContained(desc.a, "a", desc.d, "d",
                           "; along a mode nothing else is reduced");
}

absl::Status ValidateSorting(const ReductionDesc& desc) {
  if (IsComplex(desc.a.element_type)) {
    return InvalidArgument("OPERATOR_NEEDS_ORDER", "sorting is not defined on ",
                           NameOf(desc.a.element_type),
                           ", wanted a real element type");
  }
  const UnaryOperator unary = desc.a.unary;
  if (unary != UnaryOperator::kIdentity && unary != UnaryOperator::kConj &&
      unary != UnaryOperator::kReal) {
    return InvalidArgument("OPERATOR_IN_SORTING", "a has operator ",
                           NameOf(unary), ", wanted elements as they are");
  }
  return ValidateSortingTypes(
      {desc.a.element_type, desc.d.element_type, desc.compute_type});
}

}  // namespace

absl::Status Validate(const ReductionDesc& desc) {
  TENSORD_RETURN_IF_ERROR(ValidateOperand(desc.a, "a"));
  TENSORD_RETURN_IF_ERROR(ValidateOperand(desc.d, "d"));
  TENSORD_RETURN_IF_ERROR(ValidateOutput(desc.d));
  TENSORD_RETURN_IF_ERROR(ValidateContained(
      desc.d, "d", desc.a, "a",
      "; a reduction cannot broadcast, an element-wise operation can"));
  TENSORD_RETURN_IF_ERROR(ValidateExtents(desc.a, "a", desc.d, "d"));
  if (desc.c) {
    TENSORD_RETURN_IF_ERROR(ValidateOperand(*desc.c, "c"));
    TENSORD_RETURN_IF_ERROR(ValidateAddend(*desc.c, desc.d));
  }
  if (desc.along) TENSORD_RETURN_IF_ERROR(ValidateAlong(desc));
  if (desc.sorts()) return ValidateSorting(desc);
  if (!Reduces(desc.op)) {
    return InvalidArgument("OPERATOR_DOES_NOT_REDUCE", "op is ",
                           NameOf(desc.op), ", wanted ADD, MUL, MAX or MIN");
  }
  TENSORD_RETURN_IF_ERROR(ValidateBinary(desc.op, desc.a.element_type));
  return ValidateReductionTypes(
      {desc.a.element_type, desc.d.element_type, desc.compute_type});
}

}  // namespace tensord::core
