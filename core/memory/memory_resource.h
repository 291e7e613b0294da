// A source of memory, and the buffers that come from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"

namespace tensord::core {

/// Every allocation is aligned to this, whatever the resource.
inline constexpr int64_t kBufferAlignment = 256;

/// Where memory comes from. Resources stack: a limit or a pool is one that
/// takes its memory from another ("upstream"), which must outlive it.
///
/// Threads  safe for concurrent use.
class MemoryResource {
 public:
  virtual ~MemoryResource() = default;

  /// `bytes` bytes at a multiple of kBufferAlignment; contents undefined.
  ///
  /// Requires  bytes > 0.
  /// Errors    RESOURCE_EXHAUSTED: says how much was asked and how much is
  ///           left. Nothing has changed then.
  virtual absl::StatusOr<void*> Allocate(int64_t bytes) = 0;

  /// Takes back what Allocate(bytes) gave.
  virtual void Deallocate(void* pointer, int64_t bytes) = 0;

  /// Zeroes `bytes` bytes of what Allocate() gave; done on return.
  ///
  /// Errors  INTERNAL, UNAVAILABLE: the device failed.
  virtual absl::Status Clear(void* pointer, int64_t bytes) = 0;

  /// Counts memory that comes from elsewhere as if it had been allocated here,
  /// where anything is counted.
  ///
  /// Errors  as Allocate(). Nothing has changed then.
  virtual absl::Status Charge(int64_t /*bytes*/) { return absl::OkStatus(); }
  /// Takes back what Charge(bytes) counted.
  virtual void Refund(int64_t /*bytes*/) {}
};

/// Owned bytes. Move-only; gives its memory back when it goes.
///
/// Lifetime  the resource must outlive the buffer.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(resource_, other.resource_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) resource_->Deallocate(data_, bytes_);
  }

  /// A buffer of `bytes` bytes; data() is null when bytes is 0.
  /// Requires  bytes >= 0.
  /// Errors    as MemoryResource::Allocate.
  static absl::StatusOr<Buffer> Allocate(MemoryResource& resource,
                                         int64_t bytes);

  /// Zeroes it.
  /// Errors  as MemoryResource::Clear.
  absl::Status Clear() const {
    return data_ == nullptr ? absl::OkStatus()
                            : resource_->Clear(data_, bytes_);
  }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  int64_t bytes() const { return bytes_; }

 private:
  MemoryResource* resource_ = nullptr;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace tensord::core
