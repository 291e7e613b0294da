#include "core/memory/limiting_resource.h"

#include <utility>

#include "core/base/checked_math.h"
#include "core/base/status.h"

namespace tensord::core {

LimitingResource::LimitingResource(MemoryResource& upstream,
                                   int64_t limit_bytes, std::string what)
    : upstream_(upstream), limit_bytes_(limit_bytes), what_(std::move(what)) {}

absl::Status LimitingResource::Count(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  const int64_t left = limit_bytes_ - used_bytes_;
  if (bytes > left || RoundUp(bytes, kBufferAlignment) > left) {
    return ResourceExhausted("MEMORY_LIMIT", what_, ": asked for ", bytes,
                             " bytes, ", left, " of ", limit_bytes_,
                             " bytes left");
  }
  used_bytes_ += RoundUp(bytes, kBufferAlignment);
  return absl::OkStatus();
}

void LimitingResource::Uncount(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  used_bytes_ -= RoundUp(bytes, kBufferAlignment);
}

absl::StatusOr<void*> LimitingResource::Allocate(int64_t bytes) {
  TENSORD_RETURN_IF_ERROR(Count(bytes));
  absl::StatusOr<void*> pointer = upstream_.Allocate(bytes);
  if (!pointer.ok()) Uncount(bytes);
  return pointer;
}

void LimitingResource::Deallocate(void* pointer, int64_t bytes) {
  // First, so that nobody is refused what is already free.
  Uncount(bytes);
  upstream_.Deallocate(pointer, bytes);
}

absl::Status LimitingResource::Charge(int64_t bytes) {
  TENSORD_RETURN_IF_ERROR(Count(bytes));
  absl::Status charged = upstream_.Charge(bytes);
  if (!charged.ok()) Uncount(bytes);
  return charged;
}

void LimitingResource::Refund(int64_t bytes) {
  Uncount(bytes);
  upstream_.Refund(bytes);
}

int64_t LimitingResource::used_bytes() const {
  absl::MutexLock lock(&mutex_);
  return used_bytes_;
}

}  // namespace tensord::core
