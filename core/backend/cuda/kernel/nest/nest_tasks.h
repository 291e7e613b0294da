// What the kernels that go through loop nests are given, and the functions that
// queue them. Plain C++: made by a .cc file, run by the .cu file.
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

/// Words from many places to many others. Strides may be negative.
struct CopyTask {
  const void* a = nullptr;
  void* d = nullptr;
  int word_bytes = 4;   // 1, 2, 4, 8 or 16
  IndexSpace<2> modes;  // counts words of a and d
};

cudaError_t QueueFill(const FillTask& task, cudaStream_t stream);
cudaError_t QueueCopy(const CopyTask& task, cudaStream_t stream);

}  // namespace tensord::core::cuda
