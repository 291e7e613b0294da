// Memory of chunks on their way out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tensord::internal {

/// Buffers that are used again and again, as fresh pages cost more than a copy
/// into them. gRPC may hold a chunk long after its call has ended, as when the
/// peer does not read; so it is given these and never the caller's memory.
///
/// Threads  safe for concurrent use.
/// Owner    whoever sends, and every buffer that is taken.
class ChunkBuffers : public std::enable_shared_from_this<ChunkBuffers> {
 public:
  /// A buffer of `bytes` or more, which comes back with its last owner.
  std::shared_ptr<std::byte[]> Take(int64_t bytes);

 private:
  // As many as are on their way at a time, as a rule.
  static constexpr size_t kMostKept = 4;

  struct Buffer {
    std::unique_ptr<std::byte[]> memory;
    int64_t bytes = 0;
  };

  absl::Mutex mutex_;
  std::vector<Buffer> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::internal
