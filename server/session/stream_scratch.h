// Scratch memory in the order of a stream.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/memory/memory_resource.h"

namespace tensord::server {

/// Lends executions on one stream their scratch memory. They run one after the
/// other, so those that are under way together share a buffer, if it is large
/// enough for the later one and not over twice as large: what many small ones
/// share does not hold memory that one large one needed.
///
/// Threads  safe for concurrent use.
class StreamScratch {
 public:
  /// At least `bytes` bytes; they return to `memory` with their last borrower.
  ///
  /// Errors  as Buffer::Allocate().
  absl::StatusOr<std::shared_ptr<const core::Buffer>> Lend(
      core::MemoryResource& memory, int64_t bytes);

 private:
  absl::Mutex mutex_;
  std::weak_ptr<const core::Buffer> last_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
