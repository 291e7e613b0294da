// Memory of a client that the server sees, too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/backend/backend.h"
#include "core/memory/memory_resource.h"
#include "core/tensor/tensor.h"
#include "server/session/storage.h"

namespace tensord::shared_memory {

/// What all regions together take.
struct Usage {
  std::atomic<int64_t> regions = 0;
  std::atomic<int64_t> bytes = 0;
};

/// A file in memory that a client has made and sealed, mapped.
///
/// The client may write it at any time: what is read then is undefined, and
/// nothing else is. It cannot shrink, so that every byte of it is there. It may
/// have holes punched into it: then a page of zeros is made when it is touched,
/// as for any other of the server's pages, and where the system has none left,
/// the server is what it kills; that is how it treats all memory.
///
/// Threads   safe for concurrent use.
/// Lifetime  shared by its connection and the tensors in it.
class Region : public std::enable_shared_from_this<Region> {
 public:
  /// Where tensors may begin: multiples of this.
  static constexpr int64_t kAlignment = core::kBufferAlignment;

  struct Options {
    uint64_t id = 0;
    int64_t bytes = 0;
    /// Counts it: the session's quota and those above.
    std::shared_ptr<core::MemoryResource> quota;
    std::shared_ptr<Usage> usage;
    /// Hears, on any thread, that no tensor is in it any more, and how many
    /// have been.
    std::function<void(uint64_t id, uint64_t adoptions)> on_released;
  };

  /// Maps the file of a descriptor, which stays the caller's.
  ///
  /// Errors  INVALID_ARGUMENT, reason SHARED_MEMORY_NOT_MEMFD,
  ///         SHARED_MEMORY_NOT_SEALED, SHARED_MEMORY_SIZE_DIFFERS or
  ///         SHARED_MEMORY_NOT_ALLOCATED. RESOURCE_EXHAUSTED: the quota's, or
  ///         reason SHARED_MEMORY_NOT_MAPPED.
  static absl::StatusOr<std::shared_ptr<Region>> Map(int descriptor,
                                                     Options options);
  ~Region();

  uint64_t id() const { return options_.id; }
  int64_t bytes() const { return options_.bytes; }

  /// OK when a tensor like that can be in it at `offset_bytes`.
  /// Errors  INVALID_ARGUMENT, reason SHARED_MEMORY_OUT_OF_RANGE or
  ///         SHARED_MEMORY_MISALIGNED.
  absl::Status Check(const core::TensorDesc& desc, int64_t offset_bytes) const;

  /// Has it be pinned, once, by `pin(start, bytes)`: a device is to reach it
  /// that has its own memory. Slow.
  ///
  /// Errors  those of `pin`, but for INTERNAL and UNIMPLEMENTED; for these
  ///         FAILED_PRECONDITION, reason SHARED_MEMORY_NOT_PINNED.
  ///         FAILED_PRECONDITION, reason SHARED_MEMORY_GONE.
  absl::Status Pin(
      absl::FunctionRef<absl::StatusOr<std::unique_ptr<core::PinnedRange>>(
          void* start, int64_t bytes)>
          pin);
  /// Whether Pin() has nothing left to do.
  bool is_pinned() const { return is_pinned_; }

  /// A storage in it, with the contents that are there.
  ///
  /// Requires  Check().ok(); Pin().ok() for a device with its own memory.
  /// Errors    FAILED_PRECONDITION, reason SHARED_MEMORY_GONE.
  absl::StatusOr<std::shared_ptr<server::Storage>> Adopt(
      std::string name, const core::TensorDesc& desc, int64_t offset_bytes);

  /// Nobody begins to use it any more; TryUnmap() is due.
  void Drop();
  /// Gives the client's pages and the quota back, unless somebody uses them
  /// still. Whoever should look at it later sees zeros.
  /// Requires  Drop() before.
  bool TryUnmap();

 private:
  /// The part of it that one storage has.
  class Slice;

  Region(std::byte* start, Options options);
  void Release();
  absl::Status Gone() const;
  /// It takes nothing any more.
  void Uncount() const;

  std::byte* const start_;
  const Options options_;
  // Held while it is being pinned, for long perhaps; before mutex_.
  absl::Mutex pinning_;
  std::atomic<bool> is_pinned_ = false;  // written under pinning_
  std::unique_ptr<core::PinnedRange> pinned_ ABSL_GUARDED_BY(pinning_);
  absl::Mutex mutex_;
  bool is_dropped_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_unmapped_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t tensor_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t adoptions_ ABSL_GUARDED_BY(mutex_) = 0;
  // Those that are there, and some that were.
  std::vector<std::weak_ptr<server::Storage>> storages_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::shared_memory
