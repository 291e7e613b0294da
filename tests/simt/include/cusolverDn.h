// Stands in for NVIDIA's header of this name in tests: the types and functions
// of cuSOLVER that the product uses whatever the type of elements. Routines for
// matrices are those of tests/simt/cusolver. The values are those of cuSOLVER
// 12.
//
// Threads  every function may be called from any thread, on handles that no
//          other thread uses meanwhile.
#pragma once

#include "cuComplex.h"
#include "cublas_v2.h"
#include "cuda_runtime_api.h"

#define CUSOLVER_VER_MAJOR 12

enum cusolverStatus_t {
  CUSOLVER_STATUS_SUCCESS = 0,
  CUSOLVER_STATUS_NOT_INITIALIZED = 1,
  CUSOLVER_STATUS_ALLOC_FAILED = 2,
  CUSOLVER_STATUS_INVALID_VALUE = 3,
  CUSOLVER_STATUS_EXECUTION_FAILED = 6,
};

enum cusolverEigMode_t {
  CUSOLVER_EIG_MODE_NOVECTOR = 0,
  CUSOLVER_EIG_MODE_VECTOR = 1,
};

typedef struct cusolverDnContext* cusolverDnHandle_t;
typedef struct gesvdjInfo* gesvdjInfo_t;
typedef struct syevjInfo* syevjInfo_t;

extern "C" {

cusolverStatus_t cusolverGetVersion(int* version);
cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle);
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle);
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle,
                                     cudaStream_t streamId);
cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t* info);
cusolverStatus_t cusolverDnDestroyGesvdjInfo(gesvdjInfo_t info);
cusolverStatus_t cusolverDnCreateSyevjInfo(syevjInfo_t* info);
cusolverStatus_t cusolverDnDestroySyevjInfo(syevjInfo_t info);

}  // extern "C"
