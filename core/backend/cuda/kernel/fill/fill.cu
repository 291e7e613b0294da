// One word in many places, a thread a word.
#include <algorithm>

#include "core/backend/cuda/kernel/element_change.cuh"
#include "core/backend/cuda/kernel/fill/fill_task.h"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kMaxBlocks = 1 << 16;

template <typename Word>
__global__ void __launch_bounds__(kThreads)
    Fill(const __grid_constant__ FillTask task) {
  Word* const d = static_cast<Word*>(task.d);
  const Word value = *reinterpret_cast<const Word*>(task.value);
  const uint32_t step = gridDim.x * kThreads;
  // Neither sum leaves uint32_t: a step is below 2^25.
  for (uint32_t index = blockIdx.x * kThreads + threadIdx.x;
       index < task.modes.count; index += step) {
    d[OffsetOf(task.modes, index, 0)] = value;
  }
}

}  // namespace

cudaError_t QueueFill(const FillTask& task, cudaStream_t stream) {
  const Grid grid{.blocks = std::min(
                      (task.modes.count + kThreads - 1) / kThreads, kMaxBlocks),
                  .threads = kThreads};
  return VisitWord(task.word_bytes, [&](auto word) {
    return Launch(grid, stream, &Fill<decltype(word)>, task);
  });
}

}  // namespace tensord::core::cuda
