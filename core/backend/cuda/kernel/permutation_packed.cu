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

/// Places are worked out once and kept in registers for all of a block's tiles.
template <typename Word, int kPerThread, bool kSplits, bool kMoves>
__global__ void __launch_bounds__(PackedTask::kMaxThreads)
    Packed(const __grid_constant__ PackedTask task) {
  Word* const tile = static_cast<Word*>(SharedMemory());
  const Word* const a = static_cast<const Word*>(task.move.a);

  Place from[kPerThread], to[kPerThread];
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const uint32_t index = i * blockDim.x + threadIdx.x;
    from[i] = PlaceOf<kSplits, true>(task, index);
    to[i] = PlaceOf<kSplits, false>(task, index);
  }
  for (uint32_t number = blockIdx.x; number < task.outer.count;
       number += gridDim.x) {
    const Offsets<2> base = WarpOffsetsOf(task.outer, number);
    uint32_t length[2] = {};  // of this tile along the split modes
    if constexpr (kSplits) {
#pragma unroll
      for (int s = 0; s < 2; ++s) {
        const PackedTask::Split& split = task.splits[s];
        const uint32_t part =
            Remainder(Quotient(number, split.before), split.parts);
        length[s] = split.extent - part * split.part;
      }
    }
    const auto is_inside = [&](const Place& place, int i) {
      if (i * blockDim.x + threadIdx.x >= task.tile_words) return false;
      return !kSplits ||
             (place.part[0] < length[0] && place.part[1] < length[1]);
    };
    Word words[kPerThread];
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if (is_inside(from[i], i)) words[i] = a[base.at[0] + from[i].offset];
    }
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if (is_inside(from[i], i)) tile[from[i].slot] = words[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if (is_inside(to[i], i)) {
        StoreWord<kMoves>(task.move, tile[to[i].slot],
                          base.at[1] + to[i].offset);
      }
    }
    __syncthreads();
  }
}

template <typename Word, int kPerThread, bool kSplits, bool kMoves>
cudaError_t Queue(const PackedTask& task, cudaStream_t stream) {
  constexpr uint32_t kWarpWords = 32 * kPerThread;
  const Grid grid{
      .blocks = task.block_count,
      .threads = (task.tile_words + kWarpWords - 1) / kWarpWords * 32,
      // A folded index stays within the same 1024 words.
      .shared_bytes = (task.tile_words + 1023) / 1024 * 1024 *
                      static_cast<int64_t>(sizeof(Word))};
  return Launch(grid, stream, &Packed<Word, kPerThread, kSplits, kMoves>, task);
}

}  // namespace

cudaError_t QueuePacked(const PackedTask& task, cudaStream_t stream) {
  const bool is_small = task.tile_words <= 4 * PackedTask::kMaxThreads;
  const bool splits = task.split_count > 0;
  return VisitWord(task.move.word_bytes, [&](auto word) {
    using Word = decltype(word);
    if (!task.move.change.is_move) {
      return Queue<Word, 4, true, false>(task, stream);
    }
    if constexpr (sizeof(Word) < 16) {  // Tiles of wider words are all small.
      if (!is_small) {
        return splits ? Queue<Word, 8, true, true>(task, stream)
                      : Queue<Word, 8, false, true>(task, stream);
      }
    }
    return splits ? Queue<Word, 4, true, true>(task, stream)
                  : Queue<Word, 4, false, true>(task, stream);
  });
}

}  // namespace tensord::core::cuda
