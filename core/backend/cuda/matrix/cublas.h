// cuBLAS, which comes with cuSOLVER: triangles, batches of equations, products.
#pragma once

#include <cuComplex.h>
#include <cublas_v2.h>

#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::core::cuda {

/// The functions for matrices of one element type: float, double, cuComplex or
/// cuDoubleComplex. Factors are read at once, from the host.
template <typename T>
struct CublasRoutines {
  using Handle = cublasHandle_t;
  using Status = cublasStatus_t;

  Status (*Trsm)(Handle, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
                 cublasDiagType_t, int m, int n, const T* alpha, const T* a,
                 int lda, T* b, int ldb);
  Status (*TrsmBatched)(Handle, cublasSideMode_t, cublasFillMode_t,
                        cublasOperation_t, cublasDiagType_t, int m, int n,
                        const T* alpha, const T* const a[], int lda,
                        T* const b[], int ldb, int batch);
  Status (*GemmStridedBatched)(Handle, cublasOperation_t, cublasOperation_t,
                               int m, int n, int k, const T* alpha, const T* a,
                               int lda, long long a_stride, const T* b, int ldb,
                               long long b_stride, const T* beta, T* c, int ldc,
                               long long c_stride, int batch);
  /// `info` is on the device.
  Status (*GetrfBatched)(Handle, int n, T* const a[], int lda, int* pivots,
                         int* info, int batch);
  /// `info` is one number, on the host: whether arguments are wrong.
  Status (*GetrsBatched)(Handle, cublasOperation_t, int n, int sides,
                         const T* const a[], int lda, const int* pivots,
                         T* const b[], int ldb, int* info, int batch);
};

/// The functions of cuBLAS that are used.
///
/// Lifetime  the library stays loaded.
struct Cublas {
  decltype(&::cublasCreate_v2) Create;
  decltype(&::cublasDestroy_v2) Destroy;
  decltype(&::cublasSetStream_v2) SetStream;

  std::tuple<CublasRoutines<float>, CublasRoutines<double>,
             CublasRoutines<cuComplex>, CublasRoutines<cuDoubleComplex>>
      routines;

  template <typename T>
  const CublasRoutines<T>& of() const {
    return std::get<CublasRoutines<T>>(routines);
  }
};

/// Loads the library of that file name; the dynamic linker looks for it.
///
/// Errors  UNAVAILABLE: there is no such library, or it lacks a function.
absl::StatusOr<Cublas> LoadCublas(const std::string& file);

/// The library of the version that this was built with.
///
/// Errors  as LoadCublas().
absl::StatusOr<Cublas> FindCublas();

/// OK, or what the library says; `what` says what was tried.
///
/// Errors  RESOURCE_EXHAUSTED: it found no memory on the device. INTERNAL.
absl::Status CheckCublas(cublasStatus_t status, absl::string_view what);

}  // namespace tensord::core::cuda
