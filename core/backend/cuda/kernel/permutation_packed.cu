// Tiles of any modes: those that come first in a together with those that come
// first in d, so that a tile is read and written in long runs however short
// the single extents are.
#include "core/backend/cuda/kernel/element_change.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/shared_memory.cuh"

namespace tensord::core::cuda {
namespace {

/// Where a word of the tile lies, by an index in one of its two orders.
struct Place {
  int32_t offset = 0;     // from the tile's first word, in a or d
  uint32_t slot = 0;      // in shared memory
  uint32_t part[2] = {};  // along the split modes
};

template <bool kSplits, bool kOfA>
__device__ __forceinline__ Place PlaceOf(const PackedTask& task,
                                         uint32_t index) {
  const PackedTask::TileMode* const modes =
      kOfA ? task.in_a_order : task.in_d_order;
  Place place;
  uint32_t in_a_order = 0;
  for (int m = 0; m < task.tile_mode_count; ++m) {
    const PackedTask::TileMode& mode = modes[m];
    const uint32_t rest = Quotient(index, mode.extent);
    const uint32_t at = index - rest * mode.extent.divisor;
    place.offset +=
        static_cast<int32_t>(at) * (kOfA ? mode.stride_a : mode.stride_d);
    in_a_order += at * static_cast<uint32_t>(mode.weight);
    // Never by a variable index, which would put places into memory.
    if (kSplits && mode.split == 0) place.part[0] = at;
    if (kSplits && mode.split == 1) place.part[1] = at;
    index = rest;
  }
  place.slot = PackedSlot(in_a_order);
  return place;
}

/// One of a block's tiles.
struct TileAt {
  Offsets<2> base;
  uint32_t length[2];  // along the split modes
};

template <bool kSplits>
__device__ __forceinline__ TileAt TileNumber(const PackedTask& task,
                                             uint32_t number) {
  TileAt tile{WarpOffsetsOf(task.outer, number), {}};
  if constexpr (kSplits) {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      const PackedTask::Split& split = task.splits[s];
      const uint32_t part =
          Remainder(Quotient(number, split.before), split.parts);
      tile.length[s] = split.extent - part * split.part;
    }
  }
  return tile;
}

/// Blocks that a multiprocessor holds, at least, where registers allow it
/// without spilling.
template <typename Word, int kPerThread, bool kSplits, bool kMoves>
constexpr int kLeastBlocks = kPerThread == 4 && kMoves &&
                                     (sizeof(Word) < 8 || !kSplits)
                                 ? 2
                                 : 1;

/// Places are worked out once and kept in registers for all of a block's tiles.
/// While one tile is written, the words of the next are under way.
template <typename Word, int kPerThread, bool kSplits, bool kMoves>
__global__ void __launch_bounds__(
    PackedTask::kMaxThreads, kLeastBlocks<Word, kPerThread, kSplits, kMoves>)
    Packed(const PackedTask __grid_constant__ task) {
  Word* const shared = static_cast<Word*>(SharedMemory());
  const Word* const a = static_cast<const Word*>(task.move.a);

  Place from[kPerThread], to[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const uint32_t index = i * blockDim.x + threadIdx.x;
    from[i] = PlaceOf<kSplits, true>(task, index);
    to[i] = PlaceOf<kSplits, false>(task, index);
  }
  const auto is_inside = [&](const TileAt& tile, const Place& place, int i) {
    if (i * blockDim.x + threadIdx.x >= task.tile_words) return false;
    return !kSplits ||
           (place.part[0] < tile.length[0] && place.part[1] < tile.length[1]);
  };
  Word words[kPerThread];
  const auto load = [&](const TileAt& tile) {
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if (is_inside(tile, from[i], i)) {
        words[i] = a[tile.base.at[0] + from[i].offset];
      }
    }
  };

  uint32_t number = blockIdx.x;
  TileAt tile = TileNumber<kSplits>(task, number);
  load(tile);
  while (true) {
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if (is_inside(tile, from[i], i)) shared[from[i].slot] = words[i];
    }
    __syncthreads();
    number += gridDim.x;
    const bool is_last = number >= task.outer.count;
    if (!is_last) load(TileNumber<kSplits>(task, number));
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if (is_inside(tile, to[i], i)) {
        StoreWord<kMoves>(task.move, shared[to[i].slot],
                          tile.base.at[1] + to[i].offset);
      }
    }
    if (is_last) return;
    // Again, rather than kept in registers meanwhile.
    tile = TileNumber<kSplits>(task, number);
    __syncthreads();
  }
}

/// Calls visit(grid, kernel) for one kernel.
template <typename Word, int kPerThread, bool kSplits, bool kMoves,
          typename Visitor>
cudaError_t VisitPacked(const PackedTask& task, Visitor visit) {
  constexpr uint32_t kWarpWords = 32 * kPerThread;
  const Grid grid{
      .blocks = task.block_count,
      .threads = (task.tile_words + kWarpWords - 1) / kWarpWords * 32,
      // A folded index stays within the same 1024 words.
      .shared_bytes = (task.tile_words + 1023) / 1024 * 1024 *
                      static_cast<int64_t>(sizeof(Word))};
  return visit(grid, &Packed<Word, kPerThread, kSplits, kMoves>);
}

/// For the kernel that `task` is for.
template <typename Visitor>
cudaError_t VisitKernel(const PackedTask& task, Visitor visit) {
  const bool is_small = task.tile_words <= 4 * PackedTask::kMaxThreads;
  const bool splits = task.split_count > 0;
  return VisitWord(task.move.word_bytes, [&](auto word) {
    using Word = decltype(word);
    if (!task.move.change.is_move) {
      return VisitPacked<Word, 4, true, false>(task, visit);
    }
    if constexpr (sizeof(Word) < 16) {  // Tiles of wider words are all small.
      if (!is_small) {
        return splits ? VisitPacked<Word, 8, true, true>(task, visit)
                      : VisitPacked<Word, 8, false, true>(task, visit);
      }
    }
    return splits ? VisitPacked<Word, 4, true, true>(task, visit)
                  : VisitPacked<Word, 4, false, true>(task, visit);
  });
}

}  // namespace

cudaError_t QueuePacked(const PackedTask& task, cudaStream_t stream) {
  return VisitKernel(task, [&](const Grid& grid, auto* kernel) {
    return Launch(grid, stream, kernel, task);
  });
}

cudaError_t CountPackedBlocks(const PackedTask& task, int* blocks) {
  return VisitKernel(task, [&](const Grid& grid, auto* kernel) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks, kernel, static_cast<int>(grid.threads),
        static_cast<size_t>(grid.shared_bytes));
  });
}

}  // namespace tensord::core::cuda
