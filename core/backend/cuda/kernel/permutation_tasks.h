// What the permutation kernels are given, and the functions that queue them.
// Plain C++: made by the .cc files, run by the .cu files.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/backend/cuda/kernel/index_space.h"
#include "core/base/element_type.h"
#include "core/ops/operators.h"

namespace tensord::core::cuda {

/// What becomes of an element on its way from a to d.
struct ElementChange {
  /// The bits move; all that follows is unused.
  bool is_move = true;
  ElementType type_a = ElementType::kFloat32;
  ElementType type_d = ElementType::kFloat32;
  ElementType compute = ElementType::kFloat32;  // element type of arithmetic
  ComputeType compute_type = ComputeType::kFloat32;
  UnaryOperator unary = UnaryOperator::kIdentity;
  double alpha_real = 1;
  double alpha_imaginary = 0;
  /// Nothing but a factor and a conversion among float32, float16 and
  /// bfloat16, in float32.
  bool is_scaled_float = false;
};

/// Addresses of the first elements, and how many bytes a word of a has that
/// moves as a whole: an element or, when the bits move, several neighbours.
struct MoveTask {
  const void* a = nullptr;
  void* d = nullptr;
  int word_bytes = 4;  // 1, 2, 4, 8 or 16
  ElementChange change;
};

// Below, strides and extents count words; operand 0 is a and operand 1 is d.

/// Any permutation, a thread an element of d. Without an a, zeroes d.
struct ReferenceTask {
  MoveTask move;
  Loops<2> loops;
};
cudaError_t QueueReference(const ReferenceTask& task, cudaStream_t stream);

/// Neighbouring threads take neighbours in d, some words each.
struct TiledCopyTask {
  static constexpr uint32_t kThreads = 256;  // of a block
  static constexpr uint32_t kWordsPerThread = 4;

  MoveTask move;
  IndexSpace<2> modes;
};
cudaError_t QueueTiledCopy(const TiledCopyTask& task, cudaStream_t stream);

/// Runs along a mode that is contiguous in both operands, by groups: as many
/// neighbours as the operand of the wider elements has in 16 bytes.
///
/// Groups of d are written at once. Groups of a are read at once where they are
/// aligned, else put together from two. Groups that are cut by the end of a
/// run, or would be put together with what is outside of it, go element by
/// element.
struct RunsTask {
  static constexpr uint32_t kThreads = 256;  // of a block
  static constexpr uint32_t kGroupsPerThread = 2;

  MoveTask move;  // of what can be queued
  /// Groups begin where d's addresses are multiples of their bytes, so that the
  /// first one of a run may be a part of a group. Otherwise they begin with the
  /// run.
  bool is_shifted = false;
  uint32_t run = 1;     // words along the mode
  IndexSpace<2> modes;  // that mode first: groups of it
};
/// Words of a group; 0 when QueueRuns() cannot do what `move` says.
int RunsWidth(const MoveTask& move);
/// Requires  RunsWidth(task.move) > 0.
cudaError_t QueueRuns(const RunsTask& task, cudaStream_t stream);

/// Square tiles of a's fastest mode by d's fastest mode, turned in shared
/// memory.
struct TiledTask {
  static constexpr uint32_t kThreads = 256;  // of a block

  MoveTask move;
  /// Elements of one or two bytes that are turned within 4-byte words: 4 or 2;
  /// otherwise 1. Needs unit strides along both modes, and all else divisible.
  int elements_per_word = 1;
  uint32_t extent_in = 1;   // of a's fastest mode
  uint32_t extent_out = 1;  // of d's fastest mode
  int64_t stride_a_in = 1;
  int64_t stride_a_out = 1;
  int64_t stride_d_in = 1;
  int64_t stride_d_out = 1;
  FastDivisor tiles_in;   // tiles along a's fastest mode
  FastDivisor tiles_out;  // tiles along d's fastest mode
  uint32_t tile_count = 1;
  IndexSpace<2> outer;
};
/// Elements along the side of a tile.
int TileSide(int word_bytes, int elements_per_word);
cudaError_t QueueTiled(const TiledTask& task, cudaStream_t stream);

/// The word of shared memory that holds the `index`-th of a tile in a's order.
/// Lanes step through a tile by powers of two or by odd strides: folding the
/// index on itself puts either into different banks. It stays within the same
/// 32 words.
constexpr uint32_t PackedSlot(uint32_t index) {
  return index ^ (index >> 5 & 31u) ^ (index >> 10 & 31u);
}

/// One of a block's tiles.
struct PackedTile {
  int64_t base[2];   // in a and d
  uint32_t lengths;  // along the split modes, 16 bits each
  bool is_whole;     // along them
};

/// Those that come next: what a block has in shared memory before their words.
struct PackedTiles {
  static constexpr uint32_t kCount = 32;
  PackedTile tiles[kCount];
};
static_assert(sizeof(PackedTiles) % 16 == 0);

/// Tiles of any modes, held in shared memory in a's order.
struct PackedTask {
  static constexpr int kMaxTileModes = 12;  // 2^12 words
  static constexpr int kWordsPerThread = 4;
  /// Words of a warp.
  static constexpr uint32_t kWarpWords = 32 * kWordsPerThread;
  /// Words of a tile, at most: more of them when the bits move, unless words
  /// have 16 bytes.
  static constexpr int kMaxMovedWords = 4096;
  static constexpr int kMaxChangedWords = 2048;
  /// Tiles that a block has in shared memory: one is written while others come.
  static constexpr uint32_t Stages(int64_t word_bytes) {
    return word_bytes >= 4 ? 4 : 2;
  }

  /// A mode of the tile: the part of a mode that one tile holds.
  struct TileMode {
    FastDivisor extent;
    int32_t stride_a = 0;
    int32_t stride_d = 0;
    int32_t weight = 0;  // words before the next one in a's order
    int split = -1;      // which of the split modes it is part of, if any
  };
  /// A mode that is longer than its part in a tile. Unused ones hold any part.
  struct Split {
    FastDivisor before;   // words before the part's mode in the outer index
    FastDivisor parts;    // how many parts it has
    uint32_t extent = 1;  // of the whole mode
    uint32_t part = 0;    // words in a whole part
  };

  /// Threads of a block, whole warps.
  constexpr uint32_t threads() const {
    return (tile_words + kWarpWords - 1) / kWarpWords * 32;
  }
  /// Words of shared memory for a tile.
  constexpr uint32_t stage_words() const { return threads() * kWordsPerThread; }
  int64_t shared_bytes() const {
    return int64_t{sizeof(PackedTiles)} +
           int64_t{Stages(move.word_bytes)} * stage_words() * move.word_bytes;
  }

  MoveTask move;
  uint32_t tile_words = 1;
  int tile_mode_count = 0;
  TileMode in_a_order[kMaxTileModes];
  TileMode in_d_order[kMaxTileModes];
  int split_count = 0;  // at most 2
  Split splits[2];
  IndexSpace<2> outer;  // over tiles
  uint32_t block_count = 1;
};
cudaError_t QueuePacked(const PackedTask& task, cudaStream_t stream);
/// How many blocks of such a task a multiprocessor of the selected device holds
/// at a time. The addresses and block_count of `task` do not matter.
cudaError_t CountPackedBlocks(const PackedTask& task, int* blocks);

}  // namespace tensord::core::cuda
