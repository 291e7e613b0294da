#include <algorithm>

#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/shared_memory.cuh"
#include "tests/gpu/bench/projection.h"

namespace tensord::test {
namespace {

using core::cuda::Grid;
using core::cuda::Launch;

constexpr uint32_t kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 14;

__device__ __forceinline__ int64_t OffsetOf(const LoopNest& nest,
                                            uint32_t index) {
  int64_t offset = 0;
  for (int32_t i = 0; i < nest.mode_count; ++i) {
    offset += nest.strides[i] * (index % nest.extents[i]);
    index /= nest.extents[i];
  }
  return offset;
}

/// A sum with what its additions have rounded off (Knuth's two-sum).
struct Sum {
  double value = 0;
  double rest = 0;

  __device__ __forceinline__ void Add(double x) {
    const double sum = value + x;
    const double added = sum - value;
    rest += (value - (sum - added)) + (x - added);
    value = sum;
  }
  __device__ __forceinline__ void Add(const Sum& other) {
    Add(other.value);
    rest += other.rest;
  }
};

struct ComplexSum {
  Sum real, imaginary;
};

struct Float32 {
  using Stored = float;
  static __device__ __forceinline__ ComplexDouble Read(float x) {
    return {x, 0};
  }
};
struct Float64 {
  using Stored = double;
  static __device__ __forceinline__ ComplexDouble Read(double x) {
    return {x, 0};
  }
};
struct Complex64 {
  using Stored = float2;
  static __device__ __forceinline__ ComplexDouble Read(float2 x) {
    return {x.x, x.y};
  }
};

template <typename Element>
__global__ void ProjectKernel(const ProjectionTask __grid_constant__ task) {
  auto* const sums = static_cast<ComplexSum*>(core::SharedMemory());  // thread
  const auto* const tensor =
      static_cast<const typename Element::Stored*>(task.tensor);
  const uint32_t self = threadIdx.x;
  const uint32_t lane = self % task.team;
  const uint32_t teams = kThreads / task.team;
  for (int64_t first = int64_t{blockIdx.x} * teams; first < task.kept.count;
       first += int64_t{gridDim.x} * teams) {
    const int64_t own = first + self / task.team;
    ComplexSum sum;
    if (own < task.kept.count) {
      const int64_t base = OffsetOf(task.kept, static_cast<uint32_t>(own));
      for (int64_t j = lane; j < task.summed.count; j += task.team) {
        const ComplexDouble x = Element::Read(
            tensor[base + OffsetOf(task.summed, static_cast<uint32_t>(j))]);
        const ComplexDouble y = task.vector[j];
        sum.real.Add(x.real * y.real);
        sum.real.Add(-x.imaginary * y.imaginary);
        sum.imaginary.Add(x.real * y.imaginary);
        sum.imaginary.Add(x.imaginary * y.real);
      }
    }
    sums[self] = sum;
    for (uint32_t half = task.team / 2; half > 0; half /= 2) {
      __syncthreads();
      if (lane < half) {
        ComplexSum both = sums[self];
        const ComplexSum other = sums[self + half];
        both.real.Add(other.real);
        both.imaginary.Add(other.imaginary);
        sums[self] = both;
      }
    }
    if (lane == 0 && own < task.kept.count) {
      const ComplexSum all = sums[self];
      task.to[own] = {all.real.value + all.real.rest,
                      all.imaginary.value + all.imaginary.rest};
    }
    __syncthreads();  // before the next sums
  }
}

}  // namespace

cudaError_t Project(const ProjectionTask& task, cudaStream_t stream) {
  const int64_t teams = kThreads / task.team;
  const int64_t blocks = (task.kept.count + teams - 1) / teams;
  const Grid grid{.blocks = static_cast<uint32_t>(
                      std::clamp<int64_t>(blocks, 1, kMaxBlocks)),
                  .threads = kThreads,
                  .shared_bytes = kThreads * sizeof(ComplexSum)};
  switch (task.type) {
    case core::ElementType::kFloat32:
      return Launch(grid, stream, &ProjectKernel<Float32>, task);
    case core::ElementType::kFloat64:
      return Launch(grid, stream, &ProjectKernel<Float64>, task);
    case core::ElementType::kComplex64:
      return Launch(grid, stream, &ProjectKernel<Complex64>, task);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace tensord::test
