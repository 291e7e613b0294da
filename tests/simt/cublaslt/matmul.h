// What cublasLtMatmul() computes, element by element.
#pragma once

#include <complex>
#include <cstdint>

#include "cublasLt.h"

namespace tensord::simt {

/// Column-major: element (row, column) of batch i lies at row + column * ld +
/// i * batch_stride.
struct MatmulMatrix {
  cudaDataType_t type = CUDA_R_32F;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t ld = 0;
  int32_t batch_count = 1;
  int64_t batch_stride = 0;

  bool operator==(const MatmulMatrix&) const = default;
};

/// D = alpha * op(A) * op(B) + beta * C.
///
/// Invariant  sizes fit together; c is not read when beta is 0.
struct Matmul {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasOperation_t op_a = CUBLAS_OP_N;
  cublasOperation_t op_b = CUBLAS_OP_N;
  MatmulMatrix layout_a, layout_b, layout_c, layout_d;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  std::complex<double> alpha = 1;
  std::complex<double> beta = 0;
};

/// Bytes of an element.
int64_t BytesOf(cudaDataType_t type);
bool IsComplexType(cudaDataType_t type);

/// Sums in float64, of operands that are rounded to the compute type.
void Run(const Matmul& matmul);

}  // namespace tensord::simt
