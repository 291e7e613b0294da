#include "core/ops/contraction.h"

#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"

namespace tensord::core {
namespace {

absl::Status ValidateInput(const OperandDesc& x, absl::string_view name) {
  TENSORD_RETURN_IF_ERROR(ValidateOperand(x, name));
  if (x.unary != UnaryOperator::kIdentity && x.unary != UnaryOperator::kConj) {
    return InvalidArgument("OPERATOR_NOT_LINEAR", "operator ", NameOf(x.unary),
                           " of ", name,
                           ", wanted IDENTITY or CONJ in a contraction");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const ContractionDesc& desc) {
  TENSORD_RETURN_IF_ERROR(ValidateInput(desc.a, "a"));
  TENSORD_RETURN_IF_ERROR(ValidateInput(desc.b, "b"));
  TENSORD_RETURN_IF_ERROR(ValidateOperand(desc.d, "d"));
  TENSORD_RETURN_IF_ERROR(ValidateOutput(desc.d));
  TENSORD_RETURN_IF_ERROR(ValidateExtents(desc.a, "a", desc.b, "b"));
  TENSORD_RETURN_IF_ERROR(ValidateExtents(desc.a, "a", desc.d, "d"));
  TENSORD_RETURN_IF_ERROR(ValidateExtents(desc.b, "b", desc.d, "d"));
  for (const Mode mode : desc.d.modes) {
    if (PositionOf(mode, desc.a.modes) < 0 &&
        PositionOf(mode, desc.b.modes) < 0) {
      return InvalidArgument("MODE_NOT_IN_INPUT", "mode ", ToString(mode),
                             " of d is in neither a ", ToString(desc.a.modes),
                             " nor b ", ToString(desc.b.modes));
    }
  }
  if (desc.c) {
    TENSORD_RETURN_IF_ERROR(ValidateInput(*desc.c, "c"));
    TENSORD_RETURN_IF_ERROR(ValidateAddend(*desc.c, desc.d));
  }
  return ValidateContractionTypes({desc.a.element_type, desc.b.element_type,
                                   desc.d.element_type, desc.compute_type});
}

}  // namespace tensord::core
