// Ways of the host into and out of tensors' memory, wherever that is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/engine.h"
#include "server/session/stored_tensor.h"

namespace tensord::server {

/// Writes the contents of a tensor in order, as an upload brings them: Place(),
/// fill, Commit(), and again. Copies to the device go on meanwhile.
///
/// Threads   used by one thread at a time.
/// Lifetime  tensor and device must outlive it; between BeginUpload() and
///           EndUpload() of the tensor.
class ContentsWriter {
 public:
  /// Takes staging memory from `staging`.
  /// Errors  UNAVAILABLE: the device is lost. INTERNAL.
  static absl::StatusOr<ContentsWriter> Open(
      StoredTensor& tensor, Device& device,
      std::shared_ptr<core::MemoryResource> staging);
  ContentsWriter(ContentsWriter&&) = default;
  ContentsWriter& operator=(ContentsWriter&&) = delete;
  /// Waits for copies under way.
  ~ContentsWriter();

  /// Host memory for the next `bytes` bytes: the tensor's own, or staging
  /// memory where the host cannot write that.
  /// Errors  RESOURCE_EXHAUSTED: no staging memory. UNAVAILABLE: the device is
  ///         lost. INTERNAL.
  absl::StatusOr<std::span<std::byte>> Place(int64_t bytes);

  /// Makes what was placed part of the contents. Bytes of bool elements other
  /// than 0 become 1: kernels read bool. All contents are there, for every
  /// stream, when the last of them are committed.
  /// Errors  UNAVAILABLE: the device is lost. INTERNAL.
  absl::Status Commit();

 private:
  struct Staging {
    core::Buffer buffer;
    std::unique_ptr<core::Event> copied;  // null: not in use
  };

  ContentsWriter(StoredTensor& tensor,
                 std::shared_ptr<core::MemoryResource> staging)
      : tensor_(&tensor), staging_memory_(std::move(staging)) {}

  StoredTensor* tensor_;
  std::shared_ptr<core::MemoryResource> staging_memory_;
  std::unique_ptr<core::Stream> stream_;  // null when the host writes itself
  std::array<Staging, 2> staging_;        // one is filled, one copied
  size_t filled_ = 0;
  std::span<std::byte> placed_;
};

/// Reads a part of a tensor's contents in pieces, one ahead of what is asked.
///
/// Threads   used by one thread at a time.
/// Lifetime  the device must outlive it.
class ContentsReader {
 public:
  /// In bytes behind the first element; pieces of `step`.
  struct Range {
    int64_t begin;
    int64_t end;
    int64_t step;
  };
  /// Takes staging memory from `staging`.
  /// Requires  the range lies within the tensor's span; step > 0.
  /// Errors    UNAVAILABLE: the device is lost. INTERNAL.
  static absl::StatusOr<ContentsReader> Open(
      std::shared_ptr<const StoredTensor> tensor, Device& device,
      std::shared_ptr<core::MemoryResource> staging, Range range);
  ContentsReader(ContentsReader&&) = default;
  ContentsReader& operator=(ContentsReader&&) = delete;
  /// Waits for copies under way.
  ~ContentsReader();

  /// Whether pieces are in the tensor itself, where others may write them.
  bool is_in_place() const { return stream_ == nullptr; }

  /// Bytes in host memory, which stay while the owner does.
  struct Piece {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  /// The next piece; without bytes behind the last.
  /// Errors  RESOURCE_EXHAUSTED: no staging memory. UNAVAILABLE: the device is
  ///         lost. INTERNAL.
  absl::StatusOr<Piece> Next();

 private:
  /// What a piece is in, which may outlive everything else.
  struct Staging {
    std::shared_ptr<core::MemoryResource> memory;
    core::Buffer buffer;
  };
  /// A piece on its way to staging memory.
  struct Coming {
    Piece piece;
    std::unique_ptr<core::Event> end;
  };

  ContentsReader(std::shared_ptr<const StoredTensor> tensor,
                 std::shared_ptr<core::MemoryResource> staging, Range range)
      : tensor_(std::move(tensor)),
        staging_memory_(std::move(staging)),
        rest_(range) {}

  /// Takes the next piece off the rest, and queues its copy.
  absl::StatusOr<Coming> Begin();

  std::shared_ptr<const StoredTensor> tensor_;
  std::shared_ptr<core::MemoryResource> staging_memory_;
  Range rest_;                            // not begun
  std::unique_ptr<core::Stream> stream_;  // null when the host reads itself
  std::optional<Coming> coming_;
};

}  // namespace tensord::server
