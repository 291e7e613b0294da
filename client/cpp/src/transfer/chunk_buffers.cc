#include "client/cpp/src/transfer/chunk_buffers.h"

#include <utility>

namespace tensord::internal {

std::shared_ptr<std::byte[]> ChunkBuffers::Take() {
  Buffer buffer;
  {
    absl::MutexLock lock(&mutex_);
    if (!free_.empty()) {
      buffer = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (buffer == nullptr) {
    buffer = std::make_unique_for_overwrite<std::byte[]>(chunk_bytes_);
  }
  return {buffer.release(), [buffers = shared_from_this()](std::byte* bytes) {
            Buffer back(bytes);
            absl::MutexLock lock(&buffers->mutex_);
            buffers->free_.push_back(std::move(back));
          }};
}

}  // namespace tensord::internal
