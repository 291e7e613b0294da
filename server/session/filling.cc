#include "server/session/filling.h"

#include <utility>

#include "core/base/status.h"

namespace tensord::server {

Filling::Filling(absl::Span<const core::StridedView> parts,
                 core::ElementType element_type,
                 const core::ElementBytes& value)
    : element_bytes_(static_cast<int>(core::SizeOf(element_type))),
      value_(value) {
  for (const core::StridedView& part : parts) {
    core::LoopModes<1> modes;
    for (size_t m = 0; m < part.extents.size(); ++m) {
      modes.push_back({part.extents[m], {part.strides[m]}});
    }
    parts_.push_back(
        {core::Canonical(std::move(modes), 0), part.offset * element_bytes_});
  }
}

absl::Status Filling::Queue(Device& device, std::byte* first,
                            core::Stream& stream) const {
  for (const Part& part : parts_) {
    TENSORD_RETURN_IF_ERROR(device.Fill({.modes = part.modes,
                                         .d = first + part.offset_bytes,
                                         .element_bytes = element_bytes_,
                                         .value = value_},
                                        stream));
  }
  return absl::OkStatus();
}

}  // namespace tensord::server
