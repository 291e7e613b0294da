#include "core/tensor/tensor.h"

#include <bit>

#include "core/base/checked_math.h"
#include "core/base/status.h"

namespace tensord::core {

absl::Status ValidateTensor(const TensorDesc& desc) {
  const int64_t element_bytes = SizeOf(desc.element_type);
  TENSORD_RETURN_IF_ERROR(
      ValidateLayout(desc.layout, element_bytes, "the tensor"));
  if (desc.offset < 0) {
    return InvalidArgument("NEGATIVE_OFFSET", "offset is ", desc.offset,
                           ", wanted >= 0");
  }
  const auto offset_bytes = CheckedMultiply(desc.offset, element_bytes);
  if (!offset_bytes || !CheckedAdd(*offset_bytes, desc.span_bytes())) {
    return InvalidArgument("SIZE_OVERFLOW", "offset ", desc.offset,
                           " and the layout span more than 2^63 - 1 bytes");
  }
  return absl::OkStatus();
}

int64_t AlignmentOf(const TensorDesc& desc) {
  const auto bits =
      static_cast<uint64_t>(desc.offset_bytes() | kBufferAlignment);
  return int64_t{1} << std::countr_zero(bits);
}

}  // namespace tensord::core
