// Loop nests, a thread a word.
#include "core/backend/cuda/kernel/element_change.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/nest/nest_tasks.h"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 256;

template <typename Word>
__global__ void __launch_bounds__(kThreads)
    Fill(const FillTask __grid_constant__ task) {
  Word* const d = static_cast<Word*>(task.d);
  const Word value = *reinterpret_cast<const Word*>(task.value);
  ForEachIndex(task.modes.count, [&](uint32_t index) {
    d[OffsetOf(task.modes, index, 0)] = value;
  });
}

template <typename Word>
__global__ void __launch_bounds__(kThreads)
    Copy(const CopyTask __grid_constant__ task) {
  const Word* const a = static_cast<const Word*>(task.a);
  Word* const d = static_cast<Word*>(task.d);
  ForEachIndex(task.modes.count, [&](uint32_t index) {
    const Offsets<2> offsets = OffsetsOf(task.modes, index);
    d[offsets.at[1]] = a[offsets.at[0]];
  });
}

}  // namespace

cudaError_t QueueFill(const FillTask& task, cudaStream_t stream) {
  return VisitWord(task.word_bytes, [&](auto word) {
    return Launch(GridOf(task.modes.count, kThreads), stream,
                  &Fill<decltype(word)>, task);
  });
}

cudaError_t QueueCopy(const CopyTask& task, cudaStream_t stream) {
  return VisitWord(task.word_bytes, [&](auto word) {
    return Launch(GridOf(task.modes.count, kThreads), stream,
                  &Copy<decltype(word)>, task);
  });
}

}  // namespace tensord::core::cuda
