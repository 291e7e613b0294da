// Loop nests, a thread a word.
#include <algorithm>

#include "core/backend/cuda/kernel/element_change.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/nest/nest_tasks.h"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kMaxBlocks = 1 << 16;

/// Calls visit(index) for the words of this thread.
template <typename Visitor>
__device__ __forceinline__ void ForEachWord(uint32_t count, Visitor&& visit) {
  const uint32_t step = gridDim.x * kThreads;
  // Neither sum leaves uint32_t: a step is at most 2^24.
  for (uint32_t index = blockIdx.x * kThreads + threadIdx.x; index < count;
       index += step) {
    visit(index);
  }
}

template <typename Word>
__global__ void __launch_bounds__(kThreads)
    Fill(const FillTask __grid_constant__ task) {
  Word* const d = static_cast<Word*>(task.d);
  const Word value = *reinterpret_cast<const Word*>(task.value);
  ForEachWord(task.modes.count, [&](uint32_t index) {
    d[OffsetOf(task.modes, index, 0)] = value;
  });
}

template <typename Word>
__global__ void __launch_bounds__(kThreads)
    Copy(const CopyTask __grid_constant__ task) {
  const Word* const a = static_cast<const Word*>(task.a);
  Word* const d = static_cast<Word*>(task.d);
  ForEachWord(task.modes.count, [&](uint32_t index) {
    const Offsets<2> offsets = OffsetsOf(task.modes, index);
    d[offsets.at[1]] = a[offsets.at[0]];
  });
}

Grid GridOf(uint32_t count) {
  return {.blocks = std::min((count + kThreads - 1) / kThreads, kMaxBlocks),
          .threads = kThreads};
}

}  // namespace

cudaError_t QueueFill(const FillTask& task, cudaStream_t stream) {
  return VisitWord(task.word_bytes, [&](auto word) {
    return Launch(GridOf(task.modes.count), stream, &Fill<decltype(word)>,
                  task);
  });
}

cudaError_t QueueCopy(const CopyTask& task, cudaStream_t stream) {
  return VisitWord(task.word_bytes, [&](auto word) {
    return Launch(GridOf(task.modes.count), stream, &Copy<decltype(word)>,
                  task);
  });
}

}  // namespace tensord::core::cuda
