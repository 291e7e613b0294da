// Tiles of any modes: those that come first in a together with those that come
// first in d, so that a tile is read and written in long runs however short
// the single extents are.
#include <cuda_pipeline_primitives.h>

#include "core/backend/cuda/kernel/element_change.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/shared_memory.cuh"

namespace tensord::core::cuda {
namespace {

/// Where a word of the tile lies, by an index in one of its two orders.
struct Place {
  int32_t offset = 0;  // from the tile's first word, in a or d
  uint32_t slot = 0;   // in shared memory
  uint32_t parts = 0;  // along the split modes, 16 bits each
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
    if (kSplits && mode.split >= 0) place.parts += at << (16 * mode.split);
    index = rest;
  }
  place.slot = PackedSlot(in_a_order);
  return place;
}

template <bool kSplits>
__device__ __forceinline__ PackedTile TileNumber(const PackedTask& task,
                                                 uint32_t number) {
  const Offsets<2> base = OffsetsOf(task.outer, number);
  PackedTile tile{{base.at[0], base.at[1]}, 0, true};
  if constexpr (kSplits) {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      const PackedTask::Split& split = task.splits[s];
      const uint32_t part =
          Remainder(Quotient(number, split.before), split.parts);
      // The unused one holds any part.
      const uint32_t length =
          s < task.split_count
              ? min(split.part, split.extent - part * split.part)
              : PackedTask::kMaxMovedWords;
      tile.lengths |= length << (16 * s);
      tile.is_whole &= s >= task.split_count || length == split.part;
    }
  }
  return tile;
}

/// Whether a word is in a tile that is shorter than others.
__device__ __forceinline__ bool IsInside(const PackedTile& tile,
                                         uint32_t parts) {
  return (parts & 0xffffu) < (tile.lengths & 0xffffu) &&
         parts >> 16 < tile.lengths >> 16;
}

constexpr int kPerThread = PackedTask::kWordsPerThread;

/// Threads of a block, at most: as many as have registers without spilling.
template <typename Word, bool kMoves>
constexpr int kMostThreads = kMoves && sizeof(Word) < 16
                                 ? PackedTask::kMaxMovedWords / kPerThread
                                 : PackedTask::kMaxChangedWords / kPerThread;

/// Places are worked out once and kept in registers for all of a block's tiles.
/// While one tile is written, the words of the next ones are under way:
/// asynchronously where words have 4 bytes or more, else through registers.
template <typename Word, bool kSplits, bool kMoves>
__global__ void __launch_bounds__(kMostThreads<Word, kMoves>)
    Packed(const PackedTask __grid_constant__ task) {
  constexpr bool kIsAsynchronous = sizeof(Word) >= 4;
  constexpr uint32_t kStages = PackedTask::Stages(sizeof(Word));
  constexpr uint32_t kAhead = kStages - 1;
  auto& shared = *static_cast<PackedTiles*>(SharedMemory());
  Word* const stages = reinterpret_cast<Word*>(&shared + 1);
  const uint32_t stage_words = blockDim.x * kPerThread;
  const Word* const a = static_cast<const Word*>(task.move.a);

  // Threads beyond the last word move the first one into a slot that nobody
  // reads.
  int32_t from[kPerThread], to[kPerThread];
  uint32_t slots[kPerThread];  // the one written, and the one read
  uint32_t from_parts[kPerThread], to_parts[kPerThread];
  uint32_t own = 0;  // words that this thread writes
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const uint32_t index = i * blockDim.x + threadIdx.x;
    const bool is_word = index < task.tile_words;
    const Place of_a = PlaceOf<kSplits, true>(task, is_word ? index : 0);
    const Place of_d = PlaceOf<kSplits, false>(task, is_word ? index : 0);
    from[i] = of_a.offset;
    to[i] = of_d.offset;
    slots[i] = PackedSlot(index) | of_d.slot << 16;
    from_parts[i] = of_a.parts;
    to_parts[i] = of_d.parts;
    own += is_word ? 1 : 0;
  }

  // Calls visit(i) for the words that `tile` has: nearly always for all.
  const auto for_words = [&](const PackedTile& tile, const auto& parts,
                             const auto& visit) {
    if (!kSplits || tile.is_whole) {
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) visit(i);
    } else {
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        if (IsInside(tile, parts[i])) visit(i);
      }
    }
  };
  Word words[kPerThread] = {};  // on their way through registers
  const auto load = [&](const PackedTile& tile, uint32_t stage) {
    const Word* const base = a + tile.base[0];
    for_words(tile, from_parts, [&](int i) {
      if constexpr (kIsAsynchronous) {
        __pipeline_memcpy_async(stages + (stage + (slots[i] & 0xffffu)),
                                base + from[i], sizeof(Word));
      } else {
        words[i] = base[from[i]];
      }
    });
  };
  const auto put = [&](const PackedTile& tile, uint32_t stage) {
    for_words(tile, from_parts,
              [&](int i) { stages[stage + (slots[i] & 0xffffu)] = words[i]; });
  };
  const auto store = [&](const PackedTile& tile, uint32_t stage) {
    for_words(tile, to_parts, [&](int i) {
      if (i < own) {
        StoreWord<kMoves>(task.move, stages[stage + (slots[i] >> 16)],
                          tile.base[1] + to[i]);
      }
    });
  };

  const uint32_t tiles = (task.outer.count - blockIdx.x - 1) / gridDim.x + 1;
  for (uint32_t done = 0; done < tiles; done += PackedTiles::kCount) {
    const uint32_t count = min(PackedTiles::kCount, tiles - done);
    __syncthreads();  // nobody needs the tiles before any more
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
      shared.tiles[i] =
          TileNumber<kSplits>(task, blockIdx.x + (done + i) * gridDim.x);
    }
    __syncthreads();
    uint32_t now = 0, last = kAhead;  // stages: written, and loaded meanwhile
    if constexpr (kIsAsynchronous) {
#pragma unroll 1
      for (uint32_t i = 0; i < kAhead; ++i) {
        if (i < count) load(shared.tiles[i], i * stage_words);
        __pipeline_commit();  // also when empty, so that waits can count
      }
    } else {
      load(shared.tiles[0], 0);
    }
    for (uint32_t i = 0; i < count; ++i) {
      if constexpr (kIsAsynchronous) {
        __pipeline_wait_prior(kAhead - 1);
      } else {
        put(shared.tiles[i], now * stage_words);
      }
      // All of this tile has come, and who is here has written the tile
      // before: that one's stage is filled next.
      __syncthreads();
      if (i + kAhead < count) {
        load(shared.tiles[i + kAhead], last * stage_words);
      }
      if constexpr (kIsAsynchronous) __pipeline_commit();
      store(shared.tiles[i], now * stage_words);
      now = now + 1 == kStages ? 0 : now + 1;
      last = last + 1 == kStages ? 0 : last + 1;
    }
  }
}

/// Calls visit(grid, kernel) for one kernel.
template <typename Word, bool kSplits, bool kMoves, typename Visitor>
cudaError_t VisitPacked(const PackedTask& task, Visitor visit) {
  const Grid grid{.blocks = task.block_count,
                  .threads = task.threads(),
                  .shared_bytes = task.shared_bytes()};
  return visit(grid, &Packed<Word, kSplits, kMoves>);
}

/// For the kernel that `task` is for.
template <typename Visitor>
cudaError_t VisitKernel(const PackedTask& task, Visitor visit) {
  return VisitWord(task.move.word_bytes, [&](auto word) {
    using Word = decltype(word);
    if (!task.move.change.is_move) {
      return VisitPacked<Word, true, false>(task, visit);
    }
    return task.split_count > 0 ? VisitPacked<Word, true, true>(task, visit)
                                : VisitPacked<Word, false, true>(task, visit);
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
    // Else no block could have more than a kernel has without asking.
    const cudaError_t allowed = AllowShared(kernel, grid.shared_bytes);
    if (allowed != cudaSuccess) return allowed;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks, kernel, static_cast<int>(grid.threads),
        static_cast<size_t>(grid.shared_bytes));
  });
}

}  // namespace tensord::core::cuda
