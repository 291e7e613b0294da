#include "core/memory/tracking_resource.h"

#include <algorithm>

namespace tensord::core {

absl::StatusOr<void*> TrackingResource::Allocate(int64_t bytes) {
  absl::StatusOr<void*> pointer = upstream_.Allocate(bytes);
  absl::MutexLock lock(&mutex_);
  if (!pointer.ok()) {
    ++statistics_.failure_count;
    return pointer;
  }
  ++statistics_.allocation_count;
  statistics_.used_bytes += bytes;
  statistics_.peak_bytes =
      std::max(statistics_.peak_bytes, statistics_.used_bytes);
  return pointer;
}

void TrackingResource::Deallocate(void* pointer, int64_t bytes) {
  upstream_.Deallocate(pointer, bytes);
  absl::MutexLock lock(&mutex_);
  statistics_.used_bytes -= bytes;
}

MemoryStatistics TrackingResource::statistics() const {
  absl::MutexLock lock(&mutex_);
  return statistics_;
}

}  // namespace tensord::core
