#include "client/cpp/src/transfer/chunk_buffers.h"

#include <utility>

namespace tensord::internal {

std::shared_ptr<std::byte[]> ChunkBuffers::Take(int64_t bytes) {
  Buffer buffer;
  {
    absl::MutexLock lock(&mutex_);
    while (buffer.bytes < bytes && !free_.empty()) {
      buffer = std::move(free_.back());  // too small ones go
      free_.pop_back();
    }
  }
  if (buffer.bytes < bytes) {
    buffer = {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
  }
  const int64_t taken = buffer.bytes;
  return {buffer.memory.release(),
          [buffers = shared_from_this(), taken](std::byte* memory) {
            Buffer back{std::unique_ptr<std::byte[]>(memory), taken};
            absl::MutexLock lock(&buffers->mutex_);
            if (buffers->free_.size() < kMostKept) {
              buffers->free_.push_back(std::move(back));
            }
          }};
}

}  // namespace tensord::internal
