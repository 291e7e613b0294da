// Stands in for NVIDIA's header of this name in tests: CUDA C++ as far as the
// product's kernels use it, for a plain C++ compiler.
//
// Not there on purpose, so that using it fails to compile: __shared__ (see
// simt/shared_memory.h), __constant__, textures, cooperative groups,
// __activemask. Waiting for another thread by spinning never ends.
#pragma once

#include <type_traits>

#include "cuda_runtime_api.h"
#include "simt/atomics.h"
#include "simt/intrinsics.h"
#include "simt/launch.h"
#include "simt/memory_access.h"
#include "simt/threads.h"
#include "simt/warp.h"

#define __global__
#define __device__
#define __host__
// Behind the type, `const Task __grid_constant__ task`: what is the same for
// all threads of a grid is there once.
#define __grid_constant__ &
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
// Empty: the standard library spells an attribute so.
#define __noinline__

template <typename T>
cudaError_t cudaMalloc(T** devPtr, size_t size) {
  return cudaMalloc(reinterpret_cast<void**>(devPtr), size);
}

template <typename T>
cudaError_t cudaMallocHost(T** ptr, size_t size) {
  return cudaMallocHost(reinterpret_cast<void**>(ptr), size);
}

template <typename T>
requires std::is_function_v<T> cudaError_t
cudaFuncSetAttribute(T* func, cudaFuncAttribute attr, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(func), attr, value);
}

template <typename T>
requires std::is_function_v<T> cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, T* func,
                                              int blockSize,
                                              size_t dynamicSMemSize) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      numBlocks, reinterpret_cast<const void*>(func), blockSize,
      dynamicSMemSize);
}
