// Stands in for NVIDIA's header of this name in tests: the types and functions
// of cuBLAS that the product uses whatever the type of elements. Routines for
// matrices are those of tests/simt/cusolver. The values are those of cuBLAS 13.
//
// Threads  every function may be called from any thread, on handles that no
//          other thread uses meanwhile.
#pragma once

#include "cuComplex.h"
#include "cublasLt.h"
#include "cuda_runtime_api.h"

enum cublasSideMode_t { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 };
enum cublasFillMode_t {
  CUBLAS_FILL_MODE_LOWER = 0,
  CUBLAS_FILL_MODE_UPPER = 1,
};
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 };

typedef struct cublasContext* cublasHandle_t;

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId);

}  // extern "C"
