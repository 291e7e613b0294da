// cuBLAS's routines for matrices, whose names differ by type in
// NVIDIA's header: refuse what does not fit together.
#pragma once

#include "cublas_v2.h"

namespace tensord::simt {

/// T is float, double, cuComplex or cuDoubleComplex.
template <typename T>
struct CublasApi {
  using Handle = cublasHandle_t;
  using Status = cublasStatus_t;

  static Status Trsm(Handle, cublasSideMode_t, cublasFillMode_t,
                     cublasOperation_t, cublasDiagType_t, int m, int n,
                     const T* alpha, const T* a, int lda, T* b, int ldb);
  static Status TrsmBatched(Handle, cublasSideMode_t, cublasFillMode_t,
                            cublasOperation_t, cublasDiagType_t, int m, int n,
                            const T* alpha, const T* const a[], int lda,
                            T* const b[], int ldb, int batch);
  static Status GemmStridedBatched(Handle, cublasOperation_t, cublasOperation_t,
                                   int m, int n, int k, const T* alpha,
                                   const T* a, int lda, long long a_stride,
                                   const T* b, int ldb, long long b_stride,
                                   const T* beta, T* c, int ldc,
                                   long long c_stride, int batch);
  static Status GetrfBatched(Handle, int n, T* const a[], int lda, int* pivots,
                             int* info, int batch);
  static Status GetrsBatched(Handle, cublasOperation_t, int n, int sides,
                             const T* const a[], int lda, const int* pivots,
                             T* const b[], int ldb, int* info, int batch);
};

}  // namespace tensord::simt
