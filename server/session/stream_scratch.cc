#include "server/session/stream_scratch.h"

#include <utility>

#include "core/base/status.h"

namespace tensord::server {

absl::StatusOr<std::shared_ptr<const core::Buffer>> StreamScratch::Lend(
    core::MemoryResource& memory, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<const core::Buffer> buffer = last_.lock();
  if (buffer != nullptr && buffer->bytes() >= bytes &&
      buffer->bytes() / 2 <= bytes) {
    return buffer;
  }
  TENSORD_ASSIGN_OR_RETURN(core::Buffer allocated,
                           core::Buffer::Allocate(memory, bytes));
  buffer = std::make_shared<const core::Buffer>(std::move(allocated));
  last_ = buffer;
  return buffer;
}

}  // namespace tensord::server
