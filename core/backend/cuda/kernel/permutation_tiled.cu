// Tiles of a's fastest mode by d's fastest mode, turned in shared memory, so
// that both sides are read and written in whole lines.
#include "core/backend/cuda/kernel/element_change.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/shared_memory.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = TiledTask::kThreads;

/// Words along the side of a tile.
template <typename Word, int kPerWord>
constexpr uint32_t kSideWords = kPerWord == 1 && sizeof(Word) <= 4 ? 64 : 32;

/// Turns the square of elements in `words`, one row a word.
template <int kPerWord, typename Word>
__device__ __forceinline__ void Turn(Word (&words)[kPerWord]) {
  if constexpr (kPerWord == 2) {
    const uint32_t x = words[0], y = words[1];
    words[0] = (x & 0xffffu) | y << 16;
    words[1] = x >> 16 | (y & 0xffff0000u);
  } else if constexpr (kPerWord == 4) {
    Word turned[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      turned[i] = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        turned[i] |= (words[j] >> (8 * i) & 0xffu) << (8 * j);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = turned[i];
  }
}

/// Threads read squares of kPerWord x kPerWord elements, turn them, and put
/// them into the tile's columns; then they write its rows. Columns are a word
/// longer than needed, so that those of a warp lie in different banks.
template <typename Word, int kPerWord, bool kMoves>
__global__ void __launch_bounds__(kThreads)
    Tiled(const TiledTask __grid_constant__ task) {
  constexpr uint32_t kWords = kSideWords<Word, kPerWord>;
  constexpr uint32_t kSide = kWords * kPerWord;
  constexpr uint32_t kColumn = kWords + 1;
  constexpr uint32_t kRowsAtOnce = kThreads / kWords;
  constexpr uint32_t kTurns = kWords / kRowsAtOnce;
  Word* const tile = static_cast<Word*>(SharedMemory());

  const uint32_t index = blockIdx.x;
  const uint32_t rest = Quotient(index, task.tiles_out);
  const uint32_t outer = Quotient(rest, task.tiles_in);
  const uint32_t first_out = (index - rest * task.tiles_out.divisor) * kSide;
  const uint32_t first_in = (rest - outer * task.tiles_in.divisor) * kSide;
  const Offsets<2> base = WarpOffsetsOf(task.outer, outer);
  const uint32_t along = threadIdx.x % kWords;
  const uint32_t across = threadIdx.x / kWords;

  // Offsets in elements; a word's are divided by kPerWord.
  const Word* const a = static_cast<const Word*>(task.move.a);
  const int64_t from =
      base.at[0] + first_in * task.stride_a_in + first_out * task.stride_a_out;
  const uint32_t in = first_in + along * kPerWord;
  Word words[kTurns][kPerWord];
#pragma unroll
  for (uint32_t turn = 0; turn < kTurns; ++turn) {
    const uint32_t row = (turn * kRowsAtOnce + across) * kPerWord;
#pragma unroll
    for (uint32_t r = 0; r < kPerWord; ++r) {
      if (in < task.extent_in && first_out + row + r < task.extent_out) {
        words[turn][r] =
            a[(from + int64_t{along} * kPerWord * task.stride_a_in +
               int64_t{row + r} * task.stride_a_out) /
              kPerWord];
      }
    }
  }
#pragma unroll
  for (uint32_t turn = 0; turn < kTurns; ++turn) {
    const uint32_t row = turn * kRowsAtOnce + across;  // in words
    Turn<kPerWord>(words[turn]);
#pragma unroll
    for (uint32_t r = 0; r < kPerWord; ++r) {
      tile[(along * kPerWord + r) * kColumn + row] = words[turn][r];
    }
  }
  __syncthreads();

  const int64_t to =
      base.at[1] + first_in * task.stride_d_in + first_out * task.stride_d_out;
  const uint32_t out = first_out + along * kPerWord;
  if (out >= task.extent_out) return;
#pragma unroll
  for (uint32_t turn = 0; turn < kTurns * kPerWord; ++turn) {
    const uint32_t row = turn * kRowsAtOnce + across;  // in elements
    if (first_in + row < task.extent_in) {
      StoreWord<kMoves>(task.move, tile[row * kColumn + along],
                        (to + int64_t{along} * kPerWord * task.stride_d_out +
                         int64_t{row} * task.stride_d_in) /
                            kPerWord);
    }
  }
}

template <typename Word, int kPerWord, bool kMoves>
cudaError_t Queue(const TiledTask& task, cudaStream_t stream) {
  constexpr int64_t kWords = kSideWords<Word, kPerWord>;
  const Grid grid{.blocks = task.tile_count,
                  .threads = kThreads,
                  .shared_bytes = kWords * kPerWord * (kWords + 1) *
                                  static_cast<int64_t>(sizeof(Word))};
  return Launch(grid, stream, &Tiled<Word, kPerWord, kMoves>, task);
}

}  // namespace

int TileSide(int word_bytes, int elements_per_word) {
  if (elements_per_word > 1) return 32 * elements_per_word;
  return word_bytes <= 4 ? 64 : 32;
}

cudaError_t QueueTiled(const TiledTask& task, cudaStream_t stream) {
  if (task.elements_per_word == 2)
    return Queue<uint32_t, 2, true>(task, stream);
  if (task.elements_per_word == 4)
    return Queue<uint32_t, 4, true>(task, stream);
  return VisitWord(task.move.word_bytes, [&](auto word) {
    using Word = decltype(word);
    return task.move.change.is_move ? Queue<Word, 1, true>(task, stream)
                                    : Queue<Word, 1, false>(task, stream);
  });
}

}  // namespace tensord::core::cuda
