// A tensor's contents, from device to device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/device/device.h"
#include "core/memory/memory_resource.h"
#include "server/engine/engine.h"
#include "server/session/stored_tensor.h"

namespace tensord::server {

/// Copies the contents of a tensor to another, which has the same layout and
/// may be on another device.
///
/// Threads   used by one thread at a time.
/// Lifetime  both tensors, both devices and itself must outlive the work on the
///           stream.
class ContentsCopy {
 public:
  /// Takes staging memory from `staging`, which is of the source's device.
  ContentsCopy(const StoredTensor& from, Device& from_device,
               core::MemoryResource& staging, const StoredTensor& to,
               Device& to_device)
      : from_(from),
        from_device_(from_device),
        staging_memory_(staging),
        to_(to),
        to_device_(to_device) {}

  /// Takes the memory that Queue() needs; may be called again.
  /// Errors  RESOURCE_EXHAUSTED: no staging memory.
  absl::Status Allocate();

  /// Queues the copy on `stream`, one of the source's device: from a GPU to the
  /// host a piece at a time, through staging memory. From the host to a GPU, it
  /// waits for its end.
  ///
  /// Requires  called once, after Allocate(); both are allocated; nobody else
  ///           writes either, until the work on the stream is done.
  /// Errors    UNAVAILABLE: a device is lost. INTERNAL.
  absl::Status Queue(core::Stream& stream);

 private:
  /// From staging memory to its place.
  struct Piece {
    std::byte* to;
    const std::byte* from;
    size_t bytes;
  };

  absl::Status QueueToHost(core::Stream& stream);
  absl::Status CopyFromHost();

  const StoredTensor& from_;
  Device& from_device_;
  core::MemoryResource& staging_memory_;
  const StoredTensor& to_;
  Device& to_device_;
  core::Buffer staging_;
  std::vector<Piece> pieces_;
};

}  // namespace tensord::server
