// cuSOLVER's routines for matrices, whose names differ by type in NVIDIA's
// header: refuse what does not fit together, and spoil workspace and what they
// are free to destroy.
#pragma once

#include "cusolverDn.h"

namespace tensord::simt {

template <typename T>
struct RealPartOf {
  using Type = T;
};
template <>
struct RealPartOf<cuComplex> {
  using Type = float;
};
template <>
struct RealPartOf<cuDoubleComplex> {
  using Type = double;
};

/// So many of the next matrices that gesvdj, gesvdjBatched, syevd or
/// syevjBatched are given do not converge.
void RefuseToConverge(int count);

/// T is float, double, cuComplex or cuDoubleComplex.
template <typename T>
struct CusolverApi {
  using Real = typename RealPartOf<T>::Type;
  using Handle = cusolverDnHandle_t;
  using Status = cusolverStatus_t;

  static Status GeqrfSize(Handle, int m, int n, T* a, int lda, int* count);
  static Status Geqrf(Handle, int m, int n, T* a, int lda, T* tau, T* work,
                      int count, int* info);
  static Status OrgqrSize(Handle, int m, int n, int k, const T* a, int lda,
                          const T* tau, int* count);
  static Status Orgqr(Handle, int m, int n, int k, T* a, int lda, const T* tau,
                      T* work, int count, int* info);
  static Status GesvdSize(Handle, int m, int n, int* count);
  static Status Gesvd(Handle, signed char job_u, signed char job_vt, int m,
                      int n, T* a, int lda, Real* s, T* u, int ldu, T* vt,
                      int ldvt, T* work, int count, Real* real_work, int* info);
  static Status GesvdjSize(Handle, cusolverEigMode_t, int econ, int m, int n,
                           const T* a, int lda, const Real* s, const T* u,
                           int ldu, const T* v, int ldv, int* count,
                           gesvdjInfo_t);
  static Status Gesvdj(Handle, cusolverEigMode_t, int econ, int m, int n, T* a,
                       int lda, Real* s, T* u, int ldu, T* v, int ldv, T* work,
                       int count, int* info, gesvdjInfo_t);
  static Status GesvdjBatchedSize(Handle, cusolverEigMode_t, int m, int n,
                                  const T* a, int lda, const Real* s,
                                  const T* u, int ldu, const T* v, int ldv,
                                  int* count, gesvdjInfo_t, int batch);
  static Status GesvdjBatched(Handle, cusolverEigMode_t, int m, int n, T* a,
                              int lda, Real* s, T* u, int ldu, T* v, int ldv,
                              T* work, int count, int* info, gesvdjInfo_t,
                              int batch);
  static Status SyevdSize(Handle, cusolverEigMode_t, cublasFillMode_t, int n,
                          const T* a, int lda, const Real* w, int* count);
  static Status Syevd(Handle, cusolverEigMode_t, cublasFillMode_t, int n, T* a,
                      int lda, Real* w, T* work, int count, int* info);
  static Status SyevjBatchedSize(Handle, cusolverEigMode_t, cublasFillMode_t,
                                 int n, const T* a, int lda, const Real* w,
                                 int* count, syevjInfo_t, int batch);
  static Status SyevjBatched(Handle, cusolverEigMode_t, cublasFillMode_t, int n,
                             T* a, int lda, Real* w, T* work, int count,
                             int* info, syevjInfo_t, int batch);
  static Status PotrfSize(Handle, cublasFillMode_t, int n, T* a, int lda,
                          int* count);
  static Status Potrf(Handle, cublasFillMode_t, int n, T* a, int lda, T* work,
                      int count, int* info);
  static Status PotrfBatched(Handle, cublasFillMode_t, int n, T* a[], int lda,
                             int* info, int batch);
  static Status GetrfSize(Handle, int m, int n, T* a, int lda, int* count);
  static Status Getrf(Handle, int m, int n, T* a, int lda, T* work, int* pivots,
                      int* info);
  static Status Getrs(Handle, cublasOperation_t, int n, int sides, const T* a,
                      int lda, const int* pivots, T* b, int ldb, int* info);
};

}  // namespace tensord::simt
