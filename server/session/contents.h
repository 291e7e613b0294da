// Ways of the host into and out of tensors' memory, wherever that is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/engine.h"
#include "server/session/stored_tensor.h"

namespace tensord::server {

/// Writes the contents of a tensor in order, as an upload brings them: Place(),
/// fill, Commit(), and again.
///
/// Threads   used by one thread at a time.
/// Lifetime  tensor and device must outlive it; between BeginUpload() and
///           EndUpload() of the tensor.
class ContentsWriter {
 public:
  /// Errors  UNAVAILABLE: the device is lost. INTERNAL.
  static absl::StatusOr<ContentsWriter> Open(StoredTensor& tensor,
                                             Device& device);

  /// Host memory for the next `bytes` bytes: the tensor's own, or staging
  /// memory where the host cannot write that.
  /// Errors  RESOURCE_EXHAUSTED: no staging memory.
  absl::StatusOr<std::span<std::byte>> Place(int64_t bytes);

  /// Makes what was placed part of the contents. Bytes of bool elements other
  /// than 0 become 1: kernels read bool.
  /// Errors  UNAVAILABLE: the device is lost. INTERNAL.
  absl::Status Commit();

 private:
  ContentsWriter(StoredTensor& tensor, Device& device)
      : tensor_(&tensor), device_(&device) {}

  StoredTensor* tensor_;
  Device* device_;
  std::unique_ptr<core::Stream> stream_;  // null when the host writes itself
  core::Buffer staging_;
  std::span<std::byte> placed_;
};

/// Reads contents of a tensor.
///
/// Threads   used by one thread at a time.
/// Lifetime  the device must outlive it.
class ContentsReader {
 public:
  /// Errors  UNAVAILABLE: the device is lost. INTERNAL.
  static absl::StatusOr<ContentsReader> Open(
      std::shared_ptr<const StoredTensor> tensor, Device& device);

  /// Bytes in host memory, which stay while the owner does.
  struct Piece {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  /// `bytes` bytes from `offset` bytes behind the first element.
  /// Requires  they lie within the tensor's span.
  /// Errors    RESOURCE_EXHAUSTED: no staging memory. UNAVAILABLE: the device
  ///           is lost. INTERNAL.
  absl::StatusOr<Piece> Read(int64_t offset, int64_t bytes);

 private:
  ContentsReader(std::shared_ptr<const StoredTensor> tensor, Device& device)
      : tensor_(std::move(tensor)), device_(&device) {}

  std::shared_ptr<const StoredTensor> tensor_;
  Device* device_;
  std::unique_ptr<core::Stream> stream_;  // null when the host reads itself
};

/// Copies the contents of `from` to `to`, which has the same layout and may be
/// on another device: then they pass through the host in pieces.
///
/// Requires  both are allocated; nobody else writes either.
/// Errors    RESOURCE_EXHAUSTED: no staging memory. UNAVAILABLE: a device is
///           lost. INTERNAL.
absl::Status CopyContents(const std::shared_ptr<const StoredTensor>& from,
                          Device& from_device, const StoredTensor& to,
                          Device& to_device);

}  // namespace tensord::server
