// Views that have no strides, element by element.
#include <algorithm>

#include "core/backend/cuda/kernel/element_change.cuh"
#include "core/backend/cuda/kernel/gather/gather_task.h"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 16;

template <typename Word>
__global__ void __launch_bounds__(kThreads)
    Gather(const GatherTask __grid_constant__ task) {
  const Word* const storage = static_cast<const Word*>(task.storage);
  Word* const d = static_cast<Word*>(task.d);
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t index = int64_t{blockIdx.x} * kThreads + threadIdx.x;
       index < task.steps.element_count; index += step) {
    const int64_t element = Locate(task.steps, index);
    d[index] = element == GatherSteps::kPadding
                   ? *reinterpret_cast<const Word*>(task.padding)
                   : storage[element];
  }
}

template <typename Word>
__global__ void __launch_bounds__(kThreads)
    Scatter(const ScatterTask __grid_constant__ task) {
  const Word* const a = static_cast<const Word*>(task.a);
  Word* const storage = static_cast<Word*>(task.storage);
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t index = int64_t{blockIdx.x} * kThreads + threadIdx.x;
       index < task.steps.element_count; index += step) {
    const int64_t element = Locate(task.steps, index);
    if (element != GatherSteps::kPadding) storage[element] = a[index];
  }
}

Grid GridOf(const GatherSteps& steps) {
  return {.blocks = static_cast<uint32_t>(std::min(
              (steps.element_count + kThreads - 1) / kThreads, kMaxBlocks)),
          .threads = kThreads};
}

}  // namespace

cudaError_t QueueGather(const GatherTask& task, cudaStream_t stream) {
  return VisitWord(task.element_bytes, [&](auto word) {
    return Launch(GridOf(task.steps), stream, &Gather<decltype(word)>, task);
  });
}

cudaError_t QueueScatter(const ScatterTask& task, cudaStream_t stream) {
  return VisitWord(task.element_bytes, [&](auto word) {
    return Launch(GridOf(task.steps), stream, &Scatter<decltype(word)>, task);
  });
}

}  // namespace tensord::core::cuda
