// Loops over tiles, cut into parts for threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/base/heap_bytes.h"
#include "core/device/interruption.h"
#include "core/problem/loop_modes.h"

namespace tensord::core {

/// A loop that advances by `step` elements of its mode.
template <size_t operand_count>
struct TileLoop {
  int64_t extent;
  int64_t step;
  std::array<int64_t, operand_count> strides;  // (operand), elements

  int64_t tile_count() const { return (extent + step - 1) / step; }
};

/// Nested tile loops, innermost first.
///
/// Units  offsets count elements.
template <size_t operand_count>
class TileSpace {
 public:
  using Loop = TileLoop<operand_count>;
  using Offsets = std::array<int64_t, operand_count>;  // (operand)
  using Sizes = absl::InlinedVector<int64_t, 8>;       // (loop)

  void Add(const Loop& loop) { loops_.push_back(loop); }
  void Add(const LoopMode<operand_count>& mode, int64_t step = 1) {
    loops_.push_back({mode.extent, step, mode.strides});
  }

  const Loop& loop(size_t i) const { return loops_[i]; }
  size_t loop_count() const { return loops_.size(); }

  int64_t tile_count() const {
    int64_t count = 1;
    for (const Loop& loop : loops_) count *= loop.tile_count();
    return count;
  }

  int64_t heap_bytes() const { return HeapBytes(loops_); }

  /// Calls body(offsets, sizes) for the tiles [begin, end) in order: where the
  /// tile starts in each operand, and how far it reaches in each loop, which is
  /// `step` or, at the end, less.
  template <typename Body>
  void ForEach(int64_t begin, int64_t end, Body body) const {
    if (begin >= end) return;
    Sizes at(loops_.size());
    Sizes sizes(loops_.size());
    Offsets offsets = {};
    int64_t rest = begin;
    for (size_t i = 0; i < loops_.size(); ++i) {
      const Loop& loop = loops_[i];
      at[i] = rest % loop.tile_count() * loop.step;
      rest /= loop.tile_count();
      for (size_t k = 0; k < operand_count; ++k) {
        offsets[k] += at[i] * loop.strides[k];
      }
      sizes[i] = std::min(loop.step, loop.extent - at[i]);
    }
    for (int64_t tile = begin; tile < end; ++tile) {
      body(offsets, sizes);
      for (size_t i = 0; i < loops_.size(); ++i) {
        const Loop& loop = loops_[i];
        int64_t moved = loop.step;
        at[i] += moved;
        const bool carries = at[i] >= loop.extent;
        if (carries) {
          moved -= at[i];
          at[i] = 0;
        }
        for (size_t k = 0; k < operand_count; ++k) {
          offsets[k] += moved * loop.strides[k];
        }
        sizes[i] = std::min(loop.step, loop.extent - at[i]);
        if (!carries) break;
      }
    }
  }

 private:
  absl::InlinedVector<Loop, 8> loops_;
};

/// Calls body(offsets) for every coordinate of `modes`, the first fastest, or
/// until the thread's CurrentWork is stopped.
template <size_t operand_count, typename Body>
void ForEachElement(const LoopModes<operand_count>& modes, Body body) {
  TileSpace<operand_count> space;
  for (const auto& mode : modes) space.Add(mode);
  constexpr int64_t kBetweenLooks = 64;
  const int64_t count = space.tile_count();
  for (int64_t begin = 0; begin < count && !CurrentWork::ShouldStop();
       begin += kBetweenLooks) {
    space.ForEach(begin, std::min(count, begin + kBetweenLooks),
                  [&](const auto& offsets, const auto&) { body(offsets); });
  }
}

/// Calls body(begin, end) for parts of [0, count) on the threads of `pool`.
/// Parts are so large that starting them costs little when an item moves
/// `item_bytes`, and so small that they take some milliseconds at most unless
/// an item takes longer.
template <typename Body>
void ParallelRanges(ThreadPool& pool, int64_t count, int64_t item_bytes,
                    Body body) {
  constexpr int64_t kSmallestPartBytes = 128 << 10;
  constexpr int64_t kPartsPerThread = 16;
  constexpr int64_t kLargestPartBytes = 8 << 20;
  const auto items_of = [&](int64_t part_bytes) {
    return part_bytes / std::max<int64_t>(item_bytes, 1) + 1;
  };
  const int64_t most = std::max(kPartsPerThread * pool.thread_count(),
                                count / items_of(kLargestPartBytes));
  const int64_t parts =
      std::clamp<int64_t>(count / items_of(kSmallestPartBytes), 1, most);
  const int64_t each = count / parts, longer = count % parts;
  pool.ParallelFor(parts, [&](int64_t part) {
    const int64_t begin = each * part + std::min(part, longer);
    body(begin, begin + each + (part < longer ? 1 : 0));
  });
}

}  // namespace tensord::core
