// A resource that stops at a limit.
#pragma once

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/memory/memory_resource.h"

namespace tensord::core {

/// Passes on to `upstream` at most `limit_bytes` at any time: a session's
/// quota, or the part of a device that the server may use.
///
/// Units  an allocation counts with its bytes rounded up to kBufferAlignment.
class LimitingResource final : public MemoryResource {
 public:
  /// `what` names the limit in errors, e.g. "session quota".
  LimitingResource(MemoryResource& upstream, int64_t limit_bytes,
                   std::string what);

  /// Errors  RESOURCE_EXHAUSTED, reason MEMORY_LIMIT: bytes asked, left, limit.
  absl::StatusOr<void*> Allocate(int64_t bytes) override;
  void Deallocate(void* pointer, int64_t bytes) override;
  absl::Status Clear(void* pointer, int64_t bytes) override {
    return upstream_.Clear(pointer, bytes);
  }
  absl::Status Charge(int64_t bytes) override;
  void Refund(int64_t bytes) override;

  int64_t limit_bytes() const { return limit_bytes_; }
  int64_t used_bytes() const;

 private:
  absl::Status Count(int64_t bytes);
  void Uncount(int64_t bytes);

  MemoryResource& upstream_;
  const int64_t limit_bytes_;
  const std::string what_;
  mutable absl::Mutex mutex_;
  int64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::core
