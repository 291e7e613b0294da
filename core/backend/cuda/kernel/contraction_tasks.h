// What the contraction kernels are given, and the functions that queue them.
// Plain C++: made by the .cc files, run by the .cu files.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/backend/cuda/kernel/index_space.h"
#include "core/base/element_type.h"
#include "core/ops/operand_rounding.h"

namespace tensord::core::cuda {

/// Nested loops over `operand_count` operands.
template <int operand_count, int max_modes>
struct Loops {
  struct Mode {
    int64_t extent;
    int64_t strides[operand_count];
  };
  int64_t count = 1;  // product of the extents
  int mode_count = 0;
  Mode modes[max_modes];
};

/// Any contraction, a thread an element of d. Sums run in float64, complex128
/// or wrapping integers.
struct ContractionReferenceTask {
  const void* a = nullptr;  // null, like b: the first term is zero
  const void* b = nullptr;
  const void* c = nullptr;  // null: there is no second term
  void* d = nullptr;
  ElementType type_a = ElementType::kFloat32;
  ElementType type_b = ElementType::kFloat32;
  ElementType type_d = ElementType::kFloat32;   // of c, too
  ElementType compute = ElementType::kFloat64;  // kComplex128, or an integer
  OperandRounding rounding_a = OperandRounding::kNone;
  OperandRounding rounding_b = OperandRounding::kNone;
  bool conj_a = false;
  bool conj_b = false;
  bool conj_c = false;
  double alpha[2] = {1, 0};  // real and imaginary parts
  double beta[2] = {0, 0};
  Loops<4, 2 * kMaxModes> kept;  // a, b, c, d; 0 where an operand lacks it
  Loops<2, kMaxModes> k;         // a, b
  Loops<1, kMaxModes> a_only;
  Loops<1, kMaxModes> b_only;
};
cudaError_t QueueContractionReference(const ContractionReferenceTask& task,
                                      cudaStream_t stream);

}  // namespace tensord::core::cuda
