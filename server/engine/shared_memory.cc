#include "server/engine/shared_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/checked_math.h"
#include "core/base/status.h"
#include "server/engine/quota.h"

namespace tensord::server {
namespace {

/// As an allocation counts; at most kLargest, which nobody has.
int64_t Rounded(int64_t bytes) {
  constexpr int64_t kLargest = int64_t{1} << 62;
  return core::RoundUp(std::min(bytes, kLargest), core::kBufferAlignment);
}

}  // namespace

SharedMemory::Share::Share(SharedMemory& memory, std::string tenant)
    : memory_(memory), tenant_(std::move(tenant)), number_([&memory] {
        absl::MutexLock lock(&memory.mutex_);
        return memory.next_number_++;
      }()) {}

SharedMemory::Share::~Share() { SetQuota({}); }

void SharedMemory::Share::SetQuota(const MemoryQuota& quota) {
  absl::MutexLock lock(&memory_.mutex_);
  memory_.unfilled_bytes_ -= Unfilled(*this);
  quota_ = quota;
  memory_.unfilled_bytes_ += Unfilled(*this);
}

MemoryQuota SharedMemory::Share::quota() const {
  absl::MutexLock lock(&memory_.mutex_);
  return quota_;
}

int64_t SharedMemory::Share::used_bytes() const {
  absl::MutexLock lock(&memory_.mutex_);
  return used_bytes_;
}

absl::StatusOr<void*> SharedMemory::Share::Allocate(int64_t bytes) {
  TENSORD_RETURN_IF_ERROR(memory_.Reserve(*this, Rounded(bytes)));
  absl::StatusOr<void*> pointer = memory_.upstream_.Allocate(bytes);
  if (!pointer.ok()) {
    absl::MutexLock lock(&memory_.mutex_);
    memory_.Count(*this, -Rounded(bytes));
    return pointer;
  }
  const absl::Status cleaned = memory_.Clean(*this, *pointer, bytes);
  if (!cleaned.ok()) {
    memory_.Forget(*pointer, Rounded(bytes));
    Deallocate(*pointer, bytes);
    return cleaned;
  }
  return pointer;
}

void SharedMemory::Share::Deallocate(void* pointer, int64_t bytes) {
  {
    // First, so that nobody is refused what is already free.
    absl::MutexLock lock(&memory_.mutex_);
    memory_.Count(*this, -Rounded(bytes));
  }
  memory_.upstream_.Deallocate(pointer, bytes);
}

absl::Status SharedMemory::Share::Charge(int64_t bytes) {
  TENSORD_RETURN_IF_ERROR(memory_.Reserve(*this, Rounded(bytes)));
  absl::Status charged = memory_.upstream_.Charge(bytes);
  if (!charged.ok()) {
    absl::MutexLock lock(&memory_.mutex_);
    memory_.Count(*this, -Rounded(bytes));
  }
  return charged;
}

void SharedMemory::Share::Refund(int64_t bytes) {
  {
    absl::MutexLock lock(&memory_.mutex_);
    memory_.Count(*this, -Rounded(bytes));
  }
  memory_.upstream_.Refund(bytes);
}

void SharedMemory::Forget(void* pointer, int64_t bytes) {
  if (!options_.clears) return;
  absl::MutexLock lock(&mutex_);
  owners_.Forget(static_cast<std::byte*>(pointer), bytes);
}

int64_t SharedMemory::Unfilled(const Share& share) {
  return std::max<int64_t>(0, share.quota_.reserved_bytes - share.used_bytes_);
}

void SharedMemory::Count(Share& share, int64_t bytes) {
  unfilled_bytes_ -= Unfilled(share);
  share.used_bytes_ += bytes;
  used_bytes_ += bytes;
  unfilled_bytes_ += Unfilled(share);
}

absl::Status SharedMemory::Reserve(Share& share, int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (bytes > share.quota_.limit_bytes - share.used_bytes_) {
    return QuotaExceeded({.tenant = share.tenant_,
                          .quota = std::string(options_.quota),
                          .limit = share.quota_.limit_bytes,
                          .used = share.used_bytes_,
                          .retry_after = options_.retry_after},
                         bytes);
  }
  const int64_t reserved = unfilled_bytes_ - Unfilled(share);
  const int64_t left =
      std::max<int64_t>(0, options_.limit_bytes - used_bytes_ - reserved);
  if (reserved > 0 && bytes > left) {
    return core::ResourceExhausted(
        "MEMORY_LIMIT", options_.what, ": asked for ", bytes, " bytes, ", left,
        " of ", options_.limit_bytes, " bytes left, ", reserved,
        " are reserved for other tenants");
  }
  Count(share, bytes);
  return absl::OkStatus();
}

absl::Status SharedMemory::Clean(const Share& share, void* pointer,
                                 int64_t bytes) {
  if (!options_.clears) return absl::OkStatus();
  std::vector<core::LastOwners::Range> unclean;
  {
    absl::MutexLock lock(&mutex_);
    unclean = owners_.Take(static_cast<std::byte*>(pointer), Rounded(bytes),
                           share.number_);
  }
  for (const auto& range : unclean) {
    TENSORD_RETURN_IF_ERROR(upstream_.Clear(range.start, range.bytes));
  }
  return absl::OkStatus();
}

}  // namespace tensord::server
