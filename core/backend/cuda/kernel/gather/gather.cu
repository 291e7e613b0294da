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
    Gather(const __grid_constant__ GatherTask task) {
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

}  // namespace

cudaError_t QueueGather(const GatherTask& task, cudaStream_t stream) {
  const Grid grid{
      .blocks = static_cast<uint32_t>(std::min(
          (task.steps.element_count + kThreads - 1) / kThreads, kMaxBlocks)),
      .threads = kThreads};
  return VisitWord(task.element_bytes, [&](auto word) {
    return Launch(grid, stream, &Gather<decltype(word)>, task);
  });
}

}  // namespace tensord::core::cuda
