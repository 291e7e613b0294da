// cuSOLVER, loaded where it is there: without it GPUs decompose no matrices,
// and solve no equations.
#pragma once

#include <cusolverDn.h>

#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::core::cuda {

template <typename T>
struct CusolverReal {
  using Type = T;
};
template <>
struct CusolverReal<cuComplex> {
  using Type = float;
};
template <>
struct CusolverReal<cuDoubleComplex> {
  using Type = double;
};

/// The functions for matrices of one element type: float, double, cuComplex or
/// cuDoubleComplex. Those whose names end in Size tell how many elements of
/// workspace the others take. Complex types have ungqr, heevd and heevjBatched
/// under the names of real ones.
template <typename T>
struct CusolverRoutines {
  using Real = typename CusolverReal<T>::Type;
  using Handle = cusolverDnHandle_t;
  using Status = cusolverStatus_t;

  Status (*GeqrfSize)(Handle, int m, int n, T* a, int lda, int* count);
  Status (*Geqrf)(Handle, int m, int n, T* a, int lda, T* tau, T* work,
                  int count, int* info);
  Status (*OrgqrSize)(Handle, int m, int n, int k, const T* a, int lda,
                      const T* tau, int* count);
  Status (*Orgqr)(Handle, int m, int n, int k, T* a, int lda, const T* tau,
                  T* work, int count, int* info);
  Status (*GesvdSize)(Handle, int m, int n, int* count);
  Status (*Gesvd)(Handle, signed char job_u, signed char job_vt, int m, int n,
                  T* a, int lda, Real* s, T* u, int ldu, T* vt, int ldvt,
                  T* work, int count, Real* real_work, int* info);
  Status (*GesvdjSize)(Handle, cusolverEigMode_t, int econ, int m, int n,
                       const T* a, int lda, const Real* s, const T* u, int ldu,
                       const T* v, int ldv, int* count, gesvdjInfo_t);
  Status (*Gesvdj)(Handle, cusolverEigMode_t, int econ, int m, int n, T* a,
                   int lda, Real* s, T* u, int ldu, T* v, int ldv, T* work,
                   int count, int* info, gesvdjInfo_t);
  Status (*GesvdjBatchedSize)(Handle, cusolverEigMode_t, int m, int n,
                              const T* a, int lda, const Real* s, const T* u,
                              int ldu, const T* v, int ldv, int* count,
                              gesvdjInfo_t, int batch);
  Status (*GesvdjBatched)(Handle, cusolverEigMode_t, int m, int n, T* a,
                          int lda, Real* s, T* u, int ldu, T* v, int ldv,
                          T* work, int count, int* info, gesvdjInfo_t,
                          int batch);
  Status (*SyevdSize)(Handle, cusolverEigMode_t, cublasFillMode_t, int n,
                      const T* a, int lda, const Real* w, int* count);
  Status (*Syevd)(Handle, cusolverEigMode_t, cublasFillMode_t, int n, T* a,
                  int lda, Real* w, T* work, int count, int* info);
  Status (*SyevjBatchedSize)(Handle, cusolverEigMode_t, cublasFillMode_t, int n,
                             const T* a, int lda, const Real* w, int* count,
                             syevjInfo_t, int batch);
  Status (*SyevjBatched)(Handle, cusolverEigMode_t, cublasFillMode_t, int n,
                         T* a, int lda, Real* w, T* work, int count, int* info,
                         syevjInfo_t, int batch);
  Status (*PotrfSize)(Handle, cublasFillMode_t, int n, T* a, int lda,
                      int* count);
  Status (*Potrf)(Handle, cublasFillMode_t, int n, T* a, int lda, T* work,
                  int count, int* info);
  Status (*PotrfBatched)(Handle, cublasFillMode_t, int n, T* a[], int lda,
                         int* info, int batch);
  Status (*GetrfSize)(Handle, int m, int n, T* a, int lda, int* count);
  Status (*Getrf)(Handle, int m, int n, T* a, int lda, T* work, int* pivots,
                  int* info);
  Status (*Getrs)(Handle, cublasOperation_t, int n, int sides, const T* a,
                  int lda, const int* pivots, T* b, int ldb, int* info);
};

/// The functions of cuSOLVER that are used.
///
/// Lifetime  the library stays loaded.
struct Cusolver {
  decltype(&::cusolverGetVersion) GetVersion;
  decltype(&::cusolverDnCreate) Create;
  decltype(&::cusolverDnDestroy) Destroy;
  decltype(&::cusolverDnSetStream) SetStream;
  decltype(&::cusolverDnCreateGesvdjInfo) CreateGesvdjInfo;
  decltype(&::cusolverDnDestroyGesvdjInfo) DestroyGesvdjInfo;
  decltype(&::cusolverDnCreateSyevjInfo) CreateSyevjInfo;
  decltype(&::cusolverDnDestroySyevjInfo) DestroySyevjInfo;

  std::tuple<CusolverRoutines<float>, CusolverRoutines<double>,
             CusolverRoutines<cuComplex>, CusolverRoutines<cuDoubleComplex>>
      routines;

  template <typename T>
  const CusolverRoutines<T>& of() const {
    return std::get<CusolverRoutines<T>>(routines);
  }
};

/// Loads the library of that file name; the dynamic linker looks for it.
///
/// Errors  UNAVAILABLE: there is no such library, or it lacks a function.
absl::StatusOr<Cusolver> LoadCusolver(const std::string& file);

/// The library of the version that this was built with.
///
/// Errors  as LoadCusolver().
absl::StatusOr<Cusolver> FindCusolver();

/// OK, or what the library says; `what` says what was tried.
///
/// Errors  RESOURCE_EXHAUSTED: it found no memory on the device. INTERNAL.
absl::Status CheckCusolver(cusolverStatus_t status, absl::string_view what);

}  // namespace tensord::core::cuda
