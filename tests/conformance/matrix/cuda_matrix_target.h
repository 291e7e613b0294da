// The CUDA backend's kernels that factorize matrices.
#pragma once

#include "core/backend/cuda/cuda_backend.h"
#include "tests/conformance/matrix/matrix_conformance.h"

namespace tensord::core {

inline MatrixTarget CudaMatrixTarget() {
  using enum FactorizationMethod;
  return {
      .name = "Cuda",
      .create = [] { return CreateCudaBackend(0).value(); },
      .kernels = {{kQr, {"cuda.factorize.qr"}},
                  {kSvd, {"cuda.factorize.svd_jacobi", "cuda.factorize.svd"}},
                  {kEigh,
                   {"cuda.factorize.eigh_jacobi", "cuda.factorize.eigh"}},
                  {kCholesky, {"cuda.factorize.cholesky"}}},
      .sampling = {"cuda.factorize.svd_jacobi", "cuda.factorize.svd"},
      .solving = {"cuda.solve.one_by_one", "cuda.solve.batched"}};
}

}  // namespace tensord::core
