// Memory of chunks on their way out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tensord::internal {

/// Buffers that are used again and again. gRPC may hold a chunk long after its
/// call has ended, as when the peer does not read; so it is given these and
/// never the caller's memory.
///
/// Threads  safe for concurrent use.
/// Owner    whoever sends, and every buffer that is taken.
class ChunkBuffers : public std::enable_shared_from_this<ChunkBuffers> {
 public:
  explicit ChunkBuffers(int64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  /// A buffer of `chunk_bytes`, which comes back with its last owner.
  std::shared_ptr<std::byte[]> Take();

 private:
  using Buffer = std::unique_ptr<std::byte[]>;

  const int64_t chunk_bytes_;
  absl::Mutex mutex_;
  std::vector<Buffer> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::internal
