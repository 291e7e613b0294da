#include <algorithm>

#include "tests/gpu/bench/bench_kernels.h"
#ifndef __CUDACC__
#include <chrono>
#endif

#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/shared_memory.cuh"

namespace tensord::test {
namespace {

using core::cuda::Grid;
using core::cuda::Launch;

constexpr int64_t kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 14;

/// Threads for `count` items, each of which steps over those of the others.
Grid GridOf(int64_t count) {
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  return {.blocks =
              static_cast<uint32_t>(std::clamp<int64_t>(blocks, 1, kMaxBlocks)),
          .threads = kThreads};
}

__device__ __forceinline__ int64_t FirstItem() {
  return int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t ItemStep() {
  return int64_t{gridDim.x} * blockDim.x;
}

/// The multiprocessor's clock; on the CPU some other one.
__device__ __forceinline__ int64_t Cycles() {
#ifdef __CUDACC__
  return clock64();
#else
  return std::chrono::steady_clock::now().time_since_epoch().count();
#endif
}

/// Random bits that depend on `x` alone (the finaliser of SplitMix64).
__device__ __forceinline__ uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

__global__ void FillBitsKernel(unsigned char* to, int64_t bytes) {
  const int64_t words = bytes / 8;
  for (int64_t i = FirstItem(); i < words; i += ItemStep()) {
    reinterpret_cast<uint64_t*>(to)[i] = Mix(static_cast<uint64_t>(i));
  }
  for (int64_t i = words * 8 + FirstItem(); i < bytes; i += ItemStep()) {
    to[i] = static_cast<unsigned char>(Mix(static_cast<uint64_t>(i)));
  }
}

template <typename Element>
__global__ void FillElementsKernel(Element* to, int64_t count,
                                   const ElementPalette __grid_constant__
                                       palette) {
  for (int64_t i = FirstItem(); i < count; i += ItemStep()) {
    to[i] = static_cast<Element>(
        palette.bits[Mix(static_cast<uint64_t>(i)) % palette.bits.size()]);
  }
}

template <typename Number>
__global__ void FillNumbersKernel(Number* to, int64_t count, uint64_t seed) {
  const uint64_t start = Mix(seed);
  for (int64_t i = FirstItem(); i < count; i += ItemStep()) {
    const auto bits =
        static_cast<int64_t>(Mix(start + static_cast<uint64_t>(i)));
    to[i] = static_cast<Number>(static_cast<double>(bits) * 0x1p-63);
  }
}

__global__ void CountDifferencesKernel(const unsigned char* a,
                                       const unsigned char* b, int64_t bytes,
                                       uint32_t* count) {
  uint32_t differences = 0;
  const int64_t words = bytes / 8;
  for (int64_t i = FirstItem(); i < words; i += ItemStep()) {
    uint64_t x = reinterpret_cast<const uint64_t*>(a)[i] ^
                 reinterpret_cast<const uint64_t*>(b)[i];
    for (; x != 0; x >>= 8) differences += (x & 0xff) != 0;
  }
  for (int64_t i = words * 8 + FirstItem(); i < bytes; i += ItemStep()) {
    differences += a[i] != b[i];
  }
  if (differences != 0) atomicAdd(count, differences);
}

__global__ void ReadAllKernel(const uint4* from, int64_t count, uint4* sink) {
  constexpr int kAtOnce = 4;
  uint32_t all = 0;
  const int64_t step = ItemStep();
  int64_t i = FirstItem();
  for (; i + (kAtOnce - 1) * step < count; i += kAtOnce * step) {
    uint4 words[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) words[k] = from[i + k * step];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      all ^= words[k].x ^ words[k].y ^ words[k].z ^ words[k].w;
    }
  }
  for (; i < count; i += step) {
    const uint4 word = from[i];
    all ^= word.x ^ word.y ^ word.z ^ word.w;
  }
  // Keeps the loads, and comes about once in four billion threads.
  if (all == 0x5bd1e995u) *sink = make_uint4(all, all, all, all);
}

__global__ void CopyWordsKernel(const uint4* from, uint4* to, int64_t count) {
  constexpr int kAtOnce = 4;
  const int64_t step = ItemStep();
  int64_t i = FirstItem();
  for (; i + (kAtOnce - 1) * step < count; i += kAtOnce * step) {
    uint4 words[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) words[k] = from[i + k * step];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) to[i + k * step] = words[k];
  }
  for (; i < count; i += step) to[i] = from[i];
}

__global__ void NothingKernel() {}

__global__ void ChaseKernel(const ChaseTask __grid_constant__ task) {
  const int lanes = 32 / task.groups;
  const int lane = static_cast<int>(threadIdx.x);
  int64_t at = lane / lanes * task.group_stride + lane % lanes;
  const int64_t start = Cycles();
  for (int i = 0; i < task.iterations; ++i) at += task.words[at];
  const int64_t end = Cycles();
  // Without a use of `at` there would be no loads.
  if (lane == 0) *task.cycles = end - start + (at < 0 ? 1 : 0);
}

__global__ void SharedKernel(int iterations, int64_t* cycles) {
  auto* const words = static_cast<uint32_t*>(core::SharedMemory());
  const uint32_t self = threadIdx.x;
  uint32_t value = self;
  __syncthreads();
  const int64_t start = Cycles();
  for (int i = 0; i < iterations; ++i) {
    words[self] = value;
    __syncwarp();
    value += words[self ^ 1u];
    __syncwarp();
  }
  __syncthreads();
  const int64_t end = Cycles();
  if (self == 0) *cycles = end - start + (value == 0xffffffffu ? 1 : 0);
}

__global__ void SpinKernel(int64_t cycles, int64_t* counted) {
  const int64_t start = Cycles();
  int64_t passed = 0;
  while (passed < cycles) passed = Cycles() - start;
  *counted = passed;
}

}  // namespace

cudaError_t FillBits(void* to, int64_t bytes, cudaStream_t stream) {
  return Launch(GridOf(bytes / 8), stream, &FillBitsKernel,
                static_cast<unsigned char*>(to), bytes);
}

cudaError_t FillElements(void* to, int64_t bytes, const ElementPalette& palette,
                         cudaStream_t stream) {
  const int64_t count = bytes / palette.element_bytes;
  switch (palette.element_bytes) {
    case 2:
      return Launch(GridOf(count), stream, &FillElementsKernel<uint16_t>,
                    static_cast<uint16_t*>(to), count, palette);
    case 4:
      return Launch(GridOf(count), stream, &FillElementsKernel<uint32_t>,
                    static_cast<uint32_t*>(to), count, palette);
    case 8:
      return Launch(GridOf(count), stream, &FillElementsKernel<uint64_t>,
                    static_cast<uint64_t*>(to), count, palette);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t FillNumbers(float* to, int64_t count, uint64_t seed,
                        cudaStream_t stream) {
  return Launch(GridOf(count), stream, &FillNumbersKernel<float>, to, count,
                seed);
}

cudaError_t FillNumbers(double* to, int64_t count, uint64_t seed,
                        cudaStream_t stream) {
  return Launch(GridOf(count), stream, &FillNumbersKernel<double>, to, count,
                seed);
}

cudaError_t CountDifferences(const void* a, const void* b, int64_t bytes,
                             uint32_t* count, cudaStream_t stream) {
  return Launch(GridOf(bytes / 8), stream, &CountDifferencesKernel,
                static_cast<const unsigned char*>(a),
                static_cast<const unsigned char*>(b), bytes, count);
}

cudaError_t ReadAll(const void* from, int64_t bytes, void* sink,
                    cudaStream_t stream) {
  return Launch(GridOf(bytes / 64), stream, &ReadAllKernel,
                static_cast<const uint4*>(from), bytes / 16,
                static_cast<uint4*>(sink));
}

cudaError_t CopyWords(const void* from, void* to, int64_t bytes,
                      cudaStream_t stream) {
  return Launch(GridOf(bytes / 64), stream, &CopyWordsKernel,
                static_cast<const uint4*>(from), static_cast<uint4*>(to),
                bytes / 16);
}

cudaError_t Nothing(cudaStream_t stream) {
  return Launch(Grid{.blocks = 1, .threads = 32}, stream, &NothingKernel);
}

cudaError_t Chase(const ChaseTask& task, cudaStream_t stream) {
  return Launch(Grid{.blocks = 1, .threads = 32}, stream, &ChaseKernel, task);
}

cudaError_t UseSharedMemory(int threads, int iterations, int64_t* cycles,
                            cudaStream_t stream) {
  const Grid grid{.blocks = 1,
                  .threads = static_cast<uint32_t>(threads),
                  .shared_bytes = int64_t{threads} * 4};
  return Launch(grid, stream, &SharedKernel, iterations, cycles);
}

cudaError_t Spin(int64_t cycles, int64_t* counted, cudaStream_t stream) {
  return Launch(Grid{.blocks = 1, .threads = 1}, stream, &SpinKernel, cycles,
                counted);
}

}  // namespace tensord::test
