// A resource that counts.
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/memory/memory_resource.h"

namespace tensord::core {

/// What a resource has lent. Bytes as asked for, not rounded.
struct MemoryStatistics {
  int64_t used_bytes = 0;
  int64_t peak_bytes = 0;  // largest used_bytes so far
  int64_t allocation_count = 0;
  int64_t failure_count = 0;

  bool operator==(const MemoryStatistics&) const = default;
};

/// Passes everything on to `upstream` and counts it.
class TrackingResource final : public MemoryResource {
 public:
  explicit TrackingResource(MemoryResource& upstream) : upstream_(upstream) {}

  absl::StatusOr<void*> Allocate(int64_t bytes) override;
  void Deallocate(void* pointer, int64_t bytes) override;
  absl::Status Clear(void* pointer, int64_t bytes) override {
    return upstream_.Clear(pointer, bytes);
  }
  /// Not among the statistics: it was lent by others.
  absl::Status Charge(int64_t bytes) override {
    return upstream_.Charge(bytes);
  }
  void Refund(int64_t bytes) override { upstream_.Refund(bytes); }

  MemoryStatistics statistics() const;

 private:
  MemoryResource& upstream_;
  mutable absl::Mutex mutex_;
  MemoryStatistics statistics_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::core
