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

}  // namespace

absl::Status Validate(const ElementwiseDesc& desc) {
  TENSORD_RETURN_IF_ERROR(ValidateOperand(desc.d, "d"));
  TENSORD_RETURN_IF_ERROR(ValidateOutput(desc.d));
  TENSORD_RETURN_IF_ERROR(ValidateInput(desc.a, "a", desc.d));
  if (desc.b) TENSORD_RETURN_IF_ERROR(ValidateInput(*desc.b, "b", desc.d));
  TENSORD_RETURN_IF_ERROR(ValidateInput(desc.c, "c", desc.d));
  if (desc.c.element_type != desc.d.element_type) {
    return InvalidArgument(
        "ADDEND_MISMATCH", "c is ", NameOf(desc.c.element_type), " but d is ",
        NameOf(desc.d.element_type), ", wanted the same element type");
  }
  TENSORD_RETURN_IF_ERROR(ValidateBinary(desc.op_abc, desc.d.element_type));
  if (desc.b) {
    TENSORD_RETURN_IF_ERROR(ValidateBinary(desc.op_ab, desc.a.element_type));
  }
  return ValidateElementwiseTypes(
      {desc.a.element_type, desc.b ? desc.b->element_type : desc.a.element_type,
       desc.c.element_type, desc.compute_type});
}

}  // namespace tensord::core
