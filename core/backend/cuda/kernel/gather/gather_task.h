// What the kernels of views are given, and the functions that queue them.
// Plain C++: made by a .cc file, run by the .cu file.
#pragma once

#include <cuda_runtime_api.h>

#include "core/view/gather_steps.h"

namespace tensord::core::cuda {

/// A view's elements, a thread one at a time.
struct GatherTask {
  GatherSteps steps;
  const void* storage = nullptr;
  void* d = nullptr;
  int element_bytes = 4;                  // 1, 2, 4, 8 or 16
  alignas(16) unsigned char padding[16];  // an element of it
};
static_assert(sizeof(GatherTask) <= 4096, "parameters of a kernel");

/// The other way round.
struct ScatterTask {
  GatherSteps steps;
  const void* a = nullptr;
  void* storage = nullptr;
  int element_bytes = 4;  // 1, 2, 4, 8 or 16
};
static_assert(sizeof(ScatterTask) <= 4096, "parameters of a kernel");

cudaError_t QueueGather(const GatherTask& task, cudaStream_t stream);
cudaError_t QueueScatter(const ScatterTask& task, cudaStream_t stream);

}  // namespace tensord::core::cuda
