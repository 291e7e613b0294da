// Any permutation, a thread an element of d: no assumptions, no tricks.
#include <algorithm>

#include "core/backend/cuda/kernel/element_change.cuh"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 16;

template <typename Word, bool kMoves>
__global__ void __launch_bounds__(kThreads)
    Reference(const ReferenceTask __grid_constant__ task) {
  const Word* const a = static_cast<const Word*>(task.move.a);
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t index = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       index < task.element_count; index += step) {
    int64_t rest = index, from = 0, to = 0;
    for (int m = 0; m < task.mode_count; ++m) {
      const auto& mode = task.modes[m];
      const int64_t next = rest / mode.extent;
      const int64_t place = rest - next * mode.extent;
      from += place * mode.strides[0];
      to += place * mode.strides[1];
      rest = next;
    }
    StoreWord<kMoves>(task.move, a == nullptr ? Word{} : a[from], to);
  }
}

}  // namespace

cudaError_t QueueReference(const ReferenceTask& task, cudaStream_t stream) {
  const Grid grid{
      .blocks = static_cast<uint32_t>(
          std::min((task.element_count + kThreads - 1) / kThreads, kMaxBlocks)),
      .threads = kThreads};
  return VisitWord(task.move.word_bytes, [&](auto word) {
    using Word = decltype(word);
    return task.move.change.is_move
               ? Launch(grid, stream, &Reference<Word, true>, task)
               : Launch(grid, stream, &Reference<Word, false>, task);
  });
}

}  // namespace tensord::core::cuda
