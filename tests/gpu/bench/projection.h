// Tensors times vectors, for checking what a contraction left behind.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/base/element_type.h"

namespace tensord::test {

/// A complex number, whatever the tensor's type.
struct alignas(16) ComplexDouble {
  double real = 0;
  double imaginary = 0;
};

/// Nested loops over some modes of a tensor, the first the fastest.
struct LoopNest {
  static constexpr int kMostModes = 16;

  int32_t mode_count = 0;
  uint32_t count = 1;  // product of the extents
  uint32_t extents[kMostModes] = {};
  int64_t strides[kMostModes] = {};  // elements
};

/// to[i] = sum over j of tensor[kept(i) + summed(j)] * vector[j], in float64
/// and with what the additions round off.
///
/// Requires  type is float32, float64 or complex64; team is a power of two, at
///           most 256.
struct ProjectionTask {
  const void* tensor = nullptr;
  core::ElementType type = core::ElementType::kFloat32;
  LoopNest kept;
  LoopNest summed;
  uint32_t team = 1;  // threads that share a sum
  const ComplexDouble* vector = nullptr;
  ComplexDouble* to = nullptr;
};
cudaError_t Project(const ProjectionTask& task, cudaStream_t stream);

}  // namespace tensord::test
