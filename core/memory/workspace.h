// Scratch memory lent to one execution.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/checked_math.h"
#include "core/memory/memory_resource.h"

namespace tensord::core {

/// Hands out parts of a block, each aligned to kBufferAlignment; nothing is
/// given back before the whole ends.
///
/// Threads  used by one thread at a time.
class Workspace {
 public:
  /// Requires  `memory` aligned to kBufferAlignment and alive as long as *this.
  explicit Workspace(std::span<std::byte> memory) : memory_(memory) {}

  /// Bytes that a part of `bytes` takes from a workspace.
  static constexpr int64_t BytesFor(int64_t bytes) {
    return RoundUp(bytes, kBufferAlignment);
  }

  /// What has not been handed out.
  int64_t left_bytes() const { return static_cast<int64_t>(memory_.size()); }

  /// Requires  the sum of BytesFor() over all parts fits the block.
  template <typename T>
  T* Take(int64_t count) {
    const int64_t bytes = BytesFor(count * static_cast<int64_t>(sizeof(T)));
    assert(bytes <= static_cast<int64_t>(memory_.size()));
    T* const part = reinterpret_cast<T*>(memory_.data());
    memory_ = memory_.subspan(static_cast<size_t>(bytes));
    return part;
  }

 private:
  std::span<std::byte> memory_;
};

}  // namespace tensord::core
