// What a prepared program has computed of its constant operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "core/memory/memory_resource.h"
#include "server/session/stored_tensor.h"

namespace tensord::server {

/// Memory whose contents outlive the run that computes them, and what they were
/// computed from. Runs of a session are launched one after the other and have
/// one stream: a run may read what one that was launched before it has queued.
///
/// Threads   safe for concurrent use.
/// Lifetime  shared by the program and by its runs; the memory returns with the
///           last of them.
class KeptValues {
 public:
  /// A constant, and which version of its contents.
  struct Source {
    std::weak_ptr<const StoredTensor> tensor;
    uint64_t version = 0;
  };
  using Sources = std::vector<Source>;

  KeptValues(std::shared_ptr<core::MemoryResource> memory, int64_t bytes)
      : memory_(std::move(memory)), bytes_(bytes) {}

  /// Empty ones of `bytes` bytes, from the same memory.
  std::shared_ptr<KeptValues> Sibling(int64_t bytes) const {
    return std::make_shared<KeptValues>(memory_, bytes);
  }

  /// Takes the memory unless that has happened.
  /// Errors  as Buffer::Allocate().
  absl::Status Allocate();
  /// Requires  Allocate().ok() before.
  std::byte* data() const;

  /// Whether runs launched from here on find what `sources` give.
  bool AreOf(const Sources& sources) const;
  /// They are about to be computed anew: nobody finds them until Queued().
  /// Returns  the number of this computation.
  uint64_t BeginComputing();
  /// All that computes them of `sources` is queued, and tells those of
  /// `extents` that are its own, by their places in Program::kept_extents.
  void Queued(uint64_t number, Sources sources, std::vector<int64_t> extents);
  /// What was told last.
  std::vector<int64_t> extents() const;
  /// The run of that computation has failed: nobody finds them any more, unless
  /// they were computed again since.
  void Discard(uint64_t number);

 private:
  const std::shared_ptr<core::MemoryResource> memory_;
  const int64_t bytes_;
  mutable absl::Mutex mutex_;
  core::Buffer buffer_ ABSL_GUARDED_BY(mutex_);
  bool has_values_ ABSL_GUARDED_BY(mutex_) = false;
  Sources sources_ ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> extents_ ABSL_GUARDED_BY(mutex_);
  uint64_t number_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tensord::server
