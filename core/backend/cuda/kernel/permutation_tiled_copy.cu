// Neighbouring threads write neighbours in d and read where they come from:
// for permutations that leave the fastest mode in its place, and for all that
// another kernel planned and cannot run (CudaPermutation::Queue).
#include "core/backend/cuda/kernel/element_change.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = TiledCopyTask::kThreads;
// Reads of a thread that are under way at once.
constexpr uint32_t kWordsPerThread = TiledCopyTask::kWordsPerThread;

template <typename Word, bool kMoves>
__global__ void __launch_bounds__(kThreads)
    TiledCopy(const TiledCopyTask __grid_constant__ task) {
  const Word* const a = static_cast<const Word*>(task.move.a);
  const uint32_t first =
      blockIdx.x * (kThreads * kWordsPerThread) + threadIdx.x;
  Word words[kWordsPerThread];
  int64_t to[kWordsPerThread];
#pragma unroll
  for (uint32_t i = 0; i < kWordsPerThread; ++i) {
    const uint32_t index = first + i * kThreads;
    if (index < task.modes.count) {
      const Offsets<2> offsets = OffsetsOf(task.modes, index);
      words[i] = a[offsets.at[0]];
      to[i] = offsets.at[1];
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < kWordsPerThread; ++i) {
    if (first + i * kThreads < task.modes.count) {
      StoreWord<kMoves>(task.move, words[i], to[i]);
    }
  }
}

}  // namespace

cudaError_t QueueTiledCopy(const TiledCopyTask& task, cudaStream_t stream) {
  constexpr uint32_t kBlockWords = kThreads * kWordsPerThread;
  const Grid grid{.blocks = (task.modes.count + kBlockWords - 1) / kBlockWords,
                  .threads = kThreads};
  return VisitWord(task.move.word_bytes, [&](auto word) {
    using Word = decltype(word);
    return task.move.change.is_move
               ? Launch(grid, stream, &TiledCopy<Word, true>, task)
               : Launch(grid, stream, &TiledCopy<Word, false>, task);
  });
}

}  // namespace tensord::core::cuda
