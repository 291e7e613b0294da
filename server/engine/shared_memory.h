// Memory of a device, as tenants share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/memory/last_owners.h"
#include "core/memory/memory_resource.h"

namespace tensord::server {

/// What one of those who share memory may have of it.
struct MemoryQuota {
  int64_t limit_bytes = std::numeric_limits<int64_t>::max();
  int64_t reserved_bytes = 0;  // that others cannot take
};

/// Divides memory into shares, and clears what goes from one to another.
///
/// Threads  safe for concurrent use.
/// Units    an allocation counts with its bytes rounded up to kBufferAlignment.
class SharedMemory {
 public:
  struct Options {
    std::string what;  // for messages, e.g. "memory of cpu:0"
    int64_t limit_bytes = 0;
    bool clears = false;
    /// What upstream gives for the first time is zero.
    bool new_is_clean = false;
    /// The quota of a share, for messages, and whether waiting gives any back.
    absl::string_view quota;
    std::optional<absl::Duration> retry_after;
  };

  /// Lifetime  `upstream` outlives it.
  SharedMemory(core::MemoryResource& upstream, Options options)
      : upstream_(upstream),
        options_(std::move(options)),
        owners_(options_.new_is_clean) {}

  /// What one tenant has.
  ///
  /// Lifetime  the memory that it shares outlives it.
  class Share final : public core::MemoryResource {
   public:
    Share(SharedMemory& memory, std::string tenant);
    /// Requires  everything was given back.
    ~Share() override;

    /// From now on; what it has it keeps.
    void SetQuota(const MemoryQuota& quota);
    MemoryQuota quota() const;
    int64_t used_bytes() const;

    /// Errors  RESOURCE_EXHAUSTED, reason TENANT_QUOTA_EXCEEDED, or
    ///         MEMORY_LIMIT: the rest is reserved for others. Upstream's.
    absl::StatusOr<void*> Allocate(int64_t bytes) override;
    void Deallocate(void* pointer, int64_t bytes) override;
    absl::Status Clear(void* pointer, int64_t bytes) override {
      return memory_.upstream_.Clear(pointer, bytes);
    }
    absl::Status Charge(int64_t bytes) override;
    void Refund(int64_t bytes) override;

   private:
    friend class SharedMemory;

    SharedMemory& memory_;
    const std::string tenant_;
    const uint64_t number_;
    // Guarded by memory_.mutex_, which annotations cannot say.
    MemoryQuota quota_;
    int64_t used_bytes_ = 0;
  };

  /// Memory that went back to where `upstream` has it from.
  void Forget(void* pointer, int64_t bytes);

  bool clears() const { return options_.clears; }
  int64_t limit_bytes() const { return options_.limit_bytes; }

 private:
  /// What a share has reserved and not taken.
  static int64_t Unfilled(const Share& share);
  /// Counts `bytes` more of a share, or fewer.
  void Count(Share& share, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Reserve(Share& share, int64_t bytes);
  /// Clears what others had of it.
  absl::Status Clean(const Share& share, void* pointer, int64_t bytes);

  core::MemoryResource& upstream_;
  const Options options_;
  mutable absl::Mutex mutex_;
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t unfilled_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  core::LastOwners owners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
