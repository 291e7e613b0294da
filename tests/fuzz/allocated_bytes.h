// What this process has allocated.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdint>

extern "C" [[gnu::weak]] size_t __sanitizer_get_current_allocated_bytes();

namespace tensord::fuzz {

/// Units  bytes, with what the allocator takes for itself.
inline int64_t AllocatedBytes() {
  if (__sanitizer_get_current_allocated_bytes != nullptr) {
    return static_cast<int64_t>(__sanitizer_get_current_allocated_bytes());
  }
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

}  // namespace tensord::fuzz
