// Any permutation, a thread an element of d: no assumptions, no tricks.
#include "core/backend/cuda/kernel/element_change.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 256;

template <typename Word, bool kMoves>
__global__ void __launch_bounds__(kThreads)
    Reference(const ReferenceTask __grid_constant__ task) {
  const Word* const a = static_cast<const Word*>(task.move.a);
  ForEachIndex(task.loops.count, [&](int64_t index) {
    const Offsets<2> offsets = OffsetsOf(task.loops, index);
    StoreWord<kMoves>(task.move, a == nullptr ? Word{} : a[offsets.at[0]],
                      offsets.at[1]);
  });
}

}  // namespace

cudaError_t QueueReference(const ReferenceTask& task, cudaStream_t stream) {
  const Grid grid = GridOf(task.loops.count, kThreads);
  return VisitWord(task.move.word_bytes, [&](auto word) {
    using Word = decltype(word);
    return task.move.change.is_move
               ? Launch(grid, stream, &Reference<Word, true>, task)
               : Launch(grid, stream, &Reference<Word, false>, task);
  });
}

}  // namespace tensord::core::cuda
