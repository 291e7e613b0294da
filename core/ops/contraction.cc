#include "core/ops/contraction.h"

#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"

namespace tensord::core {
namespace {

constexpr absl::string_view kContracting = "in a contraction";

}  // namespace

absl::Status Validate(const ContractionDesc& desc) {
  TENSORD_RETURN_IF_ERROR(ValidateLinear(desc.a, "a", kContracting));
  TENSORD_RETURN_IF_ERROR(ValidateLinear(desc.b, "b", kContracting));
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
    TENSORD_RETURN_IF_ERROR(ValidateLinear(*desc.c, "c", kContracting));
    TENSORD_RETURN_IF_ERROR(ValidateAddend(*desc.c, desc.d));
  }
  return ValidateContractionTypes({desc.a.element_type, desc.b.element_type,
                                   desc.d.element_type, desc.compute_type});
}

}  // namespace tensord::core
