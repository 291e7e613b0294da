#include "core/ops/reduction.h"

#include "core/base/status.h"
#include "core/ops/type_tables.h"

namespace tensord::core {

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
  if (!Reduces(desc.op)) {
    return InvalidArgument("OPERATOR_DOES_NOT_REDUCE", "op is ",
                           NameOf(desc.op), ", wanted ADD, MUL, MAX or MIN");
  }
  TENSORD_RETURN_IF_ERROR(ValidateBinary(desc.op, desc.a.element_type));
  return ValidateReductionTypes(
      {desc.a.element_type, desc.d.element_type, desc.compute_type});
}

}  // namespace tensord::core
