// A resource that keeps memory for reuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/memory/memory_resource.h"

namespace tensord::core {

struct PoolOptions {
  /// The pool grows by slabs of this size, or of the request's when larger.
  int64_t slab_bytes = int64_t{64} << 20;
  /// The same for requests below large_alignment, which have slabs of their
  /// own while there is memory for them: a small tensor should not keep a large
  /// slab from others.
  int64_t small_slab_bytes = int64_t{4} << 20;
  /// Requests of at least this size start at a multiple of it, for huge pages,
  /// unless memory is scarce.
  int64_t large_alignment = int64_t{2} << 20;
};

/// Best fit with coalescing over slabs from `upstream`. What is given back is
/// kept, pages and all, and handed out again; a slab returns to upstream only
/// when upstream refuses a new one, or on Trim(). What is refused all the same
/// has any piece that is large enough, aligned to kBufferAlignment alone.
///
/// Threads  safe for concurrent use. Callers wait for each other, O(log
///          blocks), and for upstream only when they find no room.
class PoolResource final : public MemoryResource {
 public:
  /// Is told of slabs that are about to return to upstream.
  using OnRelease = std::function<void(void* slab, int64_t bytes)>;

  PoolResource(MemoryResource& upstream, const PoolOptions& options,
               OnRelease on_release = nullptr);
  /// Requires that everything was given back.
  ~PoolResource() override;

  /// Errors  as upstream's, with the bytes asked for and the pool's own free
  ///         bytes added.
  absl::StatusOr<void*> Allocate(int64_t bytes) override;
  void Deallocate(void* pointer, int64_t bytes) override;
  absl::Status Clear(void* pointer, int64_t bytes) override {
    return upstream_.Clear(pointer, bytes);
  }
  absl::Status Charge(int64_t bytes) override;
  void Refund(int64_t bytes) override { upstream_.Refund(bytes); }

  /// Returns every slab that nobody uses to upstream.
  void Trim();

  /// Bytes taken from upstream.
  int64_t reserved_bytes() const;

 private:
  using Address = std::byte*;
  struct Slab {
    int64_t bytes;
    int64_t used_bytes;
  };
  /// The slabs of one class of requests.
  struct Arena {
    std::map<Address, Slab> slabs;  // by first byte
    // Free blocks, by address and by size. No two neighbours in a slab are
    // free.
    std::map<Address, int64_t> free;
    std::set<std::pair<int64_t, Address>> free_by_size;

    /// A part of the smallest free block that holds one, or null.
    void* TakeFit(int64_t bytes, int64_t alignment);
    void AddFree(Address start, int64_t bytes);
    void RemoveFree(std::map<Address, int64_t>::iterator block);
    /// Takes out the slabs of which nothing is in use.
    void TakeUnused(std::vector<std::pair<Address, int64_t>>& unused);
    /// Requires  it is in one.
    std::map<Address, Slab>::iterator SlabOf(Address address);
    bool Holds(Address address) const;
    int64_t free_bytes() const;
  };

  bool IsLarge(int64_t bytes) const {
    return bytes >= options_.large_alignment;
  }
  Arena& ArenaOf(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return IsLarge(bytes) ? large_ : small_;
  }
  void ReleaseUnused() ABSL_EXCLUSIVE_LOCKS_REQUIRED(growth_mutex_);

  MemoryResource& upstream_;
  const PoolOptions options_;
  const OnRelease on_release_;  // or null
  // Held over calls of upstream, which may take long; before mutex_.
  absl::Mutex growth_mutex_;
  mutable absl::Mutex mutex_;
  Arena large_ ABSL_GUARDED_BY(mutex_);
  Arena small_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::core
