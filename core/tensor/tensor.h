// A tensor: owned memory seen through a layout.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/element_type.h"
#include "core/base/layout.h"
#include "core/memory/memory_resource.h"

namespace tensord::core {

/// What a tensor is, without its memory.
///
/// Units  `offset` counts elements before the first one.
struct TensorDesc {
  ElementType element_type = ElementType::kFloat32;
  Layout layout;
  int64_t offset = 0;

  /// Bytes from the first to the last element, gaps included.
  int64_t span_bytes() const {
    return SpanElements(layout) * SizeOf(element_type);
  }
  int64_t offset_bytes() const { return offset * SizeOf(element_type); }

  bool operator==(const TensorDesc&) const = default;
};

/// OK when the layout is valid, the offset is not negative and both together
/// fit int64 bytes.
///
/// Errors  INVALID_ARGUMENT.
absl::Status ValidateTensor(const TensorDesc& desc);

/// What the address of the first element is a multiple of, a power of two, in
/// memory that begins at a multiple of kBufferAlignment.
int64_t AlignmentOf(const TensorDesc& desc);

/// Invariant  buffer.bytes() == desc.offset_bytes() + desc.span_bytes().
struct Tensor {
  TensorDesc desc;
  Buffer buffer;

  /// Address of the first element.
  std::byte* first() const { return buffer.data() + desc.offset_bytes(); }
};

}  // namespace tensord::core
