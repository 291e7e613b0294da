#include "core/memory/memory_resource.h"

#include "core/base/status.h"

namespace tensord::core {

absl::StatusOr<Buffer> Buffer::Allocate(MemoryResource& resource,
                                        int64_t bytes) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  TENSORD_ASSIGN_OR_RETURN(buffer.data_, resource.Allocate(bytes));
  buffer.resource_ = &resource;
  buffer.bytes_ = bytes;
  return buffer;
}

}  // namespace tensord::core
