// What the kernel that fills is given, and the function that queues it. Plain
// C++: made by a .cc file, run by the .cu file.
#pragma once

#include <cuda_runtime_api.h>

#include "core/backend/cuda/kernel/index_space.h"

namespace tensord::core::cuda {

/// One word in many places.
struct FillTask {
  void* d = nullptr;
  int word_bytes = 4;                   // 1, 2, 4, 8 or 16
  alignas(16) unsigned char value[16];  // a word of it
  IndexSpace<1> modes;                  // counts words
};

cudaError_t QueueFill(const FillTask& task, cudaStream_t stream);

}  // namespace tensord::core::cuda
