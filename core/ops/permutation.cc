#include "core/ops/permutation.h"

#include "core/base/status.h"
#include "core/ops/operators.h"
#include "core/ops/type_tables.h"

namespace tensord::core {

absl::Status Validate(const PermutationDesc& desc) {
  TENSORD_RETURN_IF_ERROR(ValidateOperand(desc.a, "a"));
  TENSORD_RETURN_IF_ERROR(ValidateOperand(desc.d, "d"));
  TENSORD_RETURN_IF_ERROR(ValidateOutput(desc.d));
  TENSORD_RETURN_IF_ERROR(ValidateContained(
      desc.a, "a", desc.d, "d", "; to sum over it, use a reduction"));
  TENSORD_RETURN_IF_ERROR(ValidateExtents(desc.a, "a", desc.d, "d"));
  const UnaryOperator unary = desc.a.unary;
  const bool drops_parts = IsComplex(desc.a.element_type) &&
                           !IsComplex(desc.d.element_type) &&
                           !IsInteger(desc.d.element_type);
  if (drops_parts && unary != UnaryOperator::kReal &&
      unary != UnaryOperator::kImag && unary != UnaryOperator::kAbs) {
    return InvalidArgument("PART_UNKNOWN", "a is ", NameOf(desc.a.element_type),
                           " and d is ", NameOf(desc.d.element_type),
                           ", but the operator of a is ", NameOf(unary),
                           ", wanted REAL, IMAG or ABS");
  }
  // It has to be one of both types.
  TENSORD_RETURN_IF_ERROR(
      ValidateUnary(desc.a.unary, desc.d.element_type, "a, converted to d,"));
  return ValidatePermutationTypes(
      {desc.a.element_type, desc.d.element_type, desc.compute_type});
}

}  // namespace tensord::core
