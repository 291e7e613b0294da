#include "tests/simt/cusolver/routines.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <utility>

#include "tests/simt/cusolver/decompose.h"
#include "tests/simt/cusolver/matrix_place.h"
#include "tests/simt/fake_runtime.h"

struct cusolverDnContext {
  int device;
  cudaStream_t stream;
};
struct gesvdjInfo {};
struct syevjInfo {};

namespace tensord::simt {
namespace {

constexpr int kMostBatchedSide = 32;
constexpr cusolverStatus_t kSuccess = CUSOLVER_STATUS_SUCCESS;
constexpr cusolverStatus_t kInvalid = CUSOLVER_STATUS_INVALID_VALUE;

std::atomic<int> refusals = 0;

/// Whether this matrix is one of those that are not to converge.
bool IsRefused() {
  int left = refusals.load();
  while (left > 0 && !refusals.compare_exchange_weak(left, left - 1)) {
  }
  return left > 0;
}

/// Odd, so that too little shows.
int CountFor(int m, int n) { return 1 + 3 * m % 61 + n % 17; }

template <typename T>
void SpoilWork(T* work, int count) {
  std::memset(static_cast<void*>(work), 0xa5,
              static_cast<size_t>(count) * sizeof(T));
}

bool IsUsable(cusolverDnHandle_t handle) {
  int device = -1;
  return handle != nullptr && cudaGetDevice(&device) == cudaSuccess &&
         device == handle->device;
}

cusolverStatus_t Queue(cusolverDnHandle_t handle, std::function<void()> run) {
  return QueueLibraryCall(handle->stream, std::move(run)) == cudaSuccess
             ? kSuccess
             : CUSOLVER_STATUS_EXECUTION_FAILED;
}

template <typename T>
void DecomposeAt(const Place<T>& a, const Place<T>& u, const Place<T>& v,
                 bool has_adjoint_v, typename RealPartOf<T>::Type* s, int* info,
                 bool converges) {
  using Real = typename RealPartOf<T>::Type;
  const int inner = a.rows < a.columns ? a.rows : a.columns;
  const Svd svd = Decompose(a.Load());
  a.Spoil();
  u.Spoil();
  v.Spoil();
  *info = converges ? 0 : inner + 1;
  if (!converges) return;
  u.Store(svd.u);
  for (int64_t j = 0; j < v.columns; ++j) {
    for (int64_t i = 0; i < v.rows; ++i) {
      Write(v.at(i, j), has_adjoint_v ? std::conj(svd.v(j, i)) : svd.v(i, j));
    }
  }
  for (int k = 0; k < inner; ++k) {
    s[k] = static_cast<Real>(svd.s[static_cast<size_t>(k)]);
  }
}

template <typename T>
void DiagonalizeAt(const Place<T>& a, typename RealPartOf<T>::Type* w,
                   int* info, bool converges) {
  using Real = typename RealPartOf<T>::Type;
  NumberMatrix matrix = a.LoadTriangle(/*is_lower=*/true);
  const std::vector<long double> values = Diagonalize(matrix);
  a.Spoil();
  *info = converges ? 0 : a.rows + 1;
  if (!converges) return;
  a.Store(matrix);
  for (int k = 0; k < a.rows; ++k) {
    w[k] = static_cast<Real>(values[static_cast<size_t>(k)]);
  }
}

template <typename T>
int FactorCholeskyAt(const Place<T>& a) {
  NumberMatrix matrix = a.LoadTriangle(/*is_lower=*/true);
  const int info = FactorCholesky(matrix);
  for (int64_t j = 0; j < a.columns; ++j) {
    for (int64_t i = j; i < a.rows; ++i) Write(a.at(i, j), matrix(i, j));
  }
  return info;
}

}  // namespace

void RefuseToConverge(int count) { refusals = count; }

template <typename T>
cusolverStatus_t CusolverApi<T>::GeqrfSize(Handle handle, int m, int n, T*,
                                           int lda, int* count) {
  if (!IsUsable(handle) || m < 1 || n < 1 || lda < m) return kInvalid;
  *count = CountFor(m, n);
  return kSuccess;
}
template <typename T>
cusolverStatus_t CusolverApi<T>::Geqrf(Handle handle, int m, int n, T* a,
                                       int lda, T* tau, T* work, int count,
                                       int* info) {
  const Place<T> matrix{m, n, a, lda};
  if (!IsUsable(handle) || !matrix.is_valid() || count < CountFor(m, n)) {
    return kInvalid;
  }
  return Queue(handle, [=] {
    SpoilWork(work, CountFor(m, n));
    NumberMatrix own = matrix.Load();
    const std::vector<Number> factors = FactorQr(own);
    matrix.Store(own);
    for (size_t k = 0; k < factors.size(); ++k) Write(tau[k], factors[k]);
    *info = 0;
  });
}

template <typename T>
cusolverStatus_t CusolverApi<T>::OrgqrSize(Handle handle, int m, int n, int k,
                                           const T*, int lda, const T*,
                                           int* count) {
  if (!IsUsable(handle) || n < 1 || m < n || k > n || lda < m) return kInvalid;
  *count = CountFor(n, m);
  return kSuccess;
}
template <typename T>
cusolverStatus_t CusolverApi<T>::Orgqr(Handle handle, int m, int n, int k, T* a,
                                       int lda, const T* tau, T* work,
                                       int count, int* info) {
  const Place<T> matrix{m, n, a, lda};
  if (!IsUsable(handle) || !matrix.is_valid() || m < n || k > n ||
      count < CountFor(n, m)) {
    return kInvalid;
  }
  return Queue(handle, [=] {
    SpoilWork(work, CountFor(n, m));
    NumberMatrix own = matrix.Load();
    std::vector<Number> factors;
    for (int i = 0; i < k; ++i) factors.push_back(Read(tau[i]));
    FormQ(own, factors);
    matrix.Store(own);
    *info = 0;
  });
}

template <typename T>
cusolverStatus_t CusolverApi<T>::GesvdSize(Handle handle, int m, int n,
                                           int* count) {
  if (!IsUsable(handle) || n < 1 || m < n) return kInvalid;
  *count = CountFor(m, n);
  return kSuccess;
}
template <typename T>
cusolverStatus_t CusolverApi<T>::Gesvd(Handle handle, signed char job_u,
                                       signed char job_vt, int m, int n, T* a,
                                       int lda, Real* s, T* u, int ldu, T* vt,
                                       int ldvt, T* work, int count, Real*,
                                       int* info) {
  const Place<T> matrix{m, n, a, lda}, left{m, n, u, ldu},
      right{n, n, vt, ldvt};
  if (!IsUsable(handle) || job_u != 'S' || job_vt != 'S' || m < n ||
      !matrix.is_valid() || !left.is_valid() || !right.is_valid() ||
      count < CountFor(m, n)) {
    return kInvalid;
  }
  return Queue(handle, [=] {
    SpoilWork(work, CountFor(m, n));
    DecomposeAt(matrix, left, right, true, s, info, true);
  });
}

template <typename T>
cusolverStatus_t CusolverApi<T>::GesvdjSize(Handle handle, cusolverEigMode_t,
                                            int, int m, int n, const T*,
                                            int lda, const Real*, const T*,
                                            int ldu, const T*, int ldv,
                                            int* count, gesvdjInfo_t params) {
  if (!IsUsable(handle) || m < 1 || n < 1 || lda < m || ldu < m || ldv < n ||
      params == nullptr) {
    return kInvalid;
  }
  *count = CountFor(m, n);
  return kSuccess;
}
template <typename T>
cusolverStatus_t CusolverApi<T>::Gesvdj(Handle handle, cusolverEigMode_t mode,
                                        int econ, int m, int n, T* a, int lda,
                                        Real* s, T* u, int ldu, T* v, int ldv,
                                        T* work, int count, int* info,
                                        gesvdjInfo_t params) {
  const int inner = m < n ? m : n;
  const Place<T> matrix{m, n, a, lda}, left{m, inner, u, ldu},
      right{n, inner, v, ldv};
  if (!IsUsable(handle) || mode != CUSOLVER_EIG_MODE_VECTOR || econ != 1 ||
      !matrix.is_valid() || !left.is_valid() || !right.is_valid() ||
      count < CountFor(m, n) || params == nullptr) {
    return kInvalid;
  }
  return Queue(handle, [=, converges = !IsRefused()] {
    SpoilWork(work, CountFor(m, n));
    DecomposeAt(matrix, left, right, false, s, info, converges);
  });
}

template <typename T>
cusolverStatus_t CusolverApi<T>::GesvdjBatchedSize(
    Handle handle, cusolverEigMode_t, int m, int n, const T*, int lda,
    const Real*, const T*, int ldu, const T*, int ldv, int* count,
    gesvdjInfo_t params, int batch) {
  if (!IsUsable(handle) || m < 1 || n < 1 || m > kMostBatchedSide ||
      n > kMostBatchedSide || lda < m || ldu < m || ldv < n || batch < 1 ||
      params == nullptr) {
    return kInvalid;
  }
  *count = CountFor(m, n) * batch;
  return kSuccess;
}
template <typename T>
cusolverStatus_t CusolverApi<T>::GesvdjBatched(Handle handle,
                                               cusolverEigMode_t mode, int m,
                                               int n, T* a, int lda, Real* s,
                                               T* u, int ldu, T* v, int ldv,
                                               T* work, int count, int* info,
                                               gesvdjInfo_t params, int batch) {
  const Place<T> matrix{m, n, a, lda}, left{m, m, u, ldu}, right{n, n, v, ldv};
  if (!IsUsable(handle) || mode != CUSOLVER_EIG_MODE_VECTOR ||
      !matrix.is_valid() || !left.is_valid() || !right.is_valid() ||
      m > kMostBatchedSide || n > kMostBatchedSide || batch < 1 ||
      count < CountFor(m, n) * batch || params == nullptr) {
    return kInvalid;
  }
  std::vector<bool> converges;
  for (int i = 0; i < batch; ++i) converges.push_back(!IsRefused());
  return Queue(handle, [=] {
    SpoilWork(work, CountFor(m, n) * batch);
    for (int64_t i = 0; i < batch; ++i) {
      DecomposeAt(Place<T>{m, n, a + i * lda * n, lda},
                  Place<T>{m, m, u + i * ldu * m, ldu},
                  Place<T>{n, n, v + i * ldv * n, ldv}, false,
                  s + i * (m < n ? m : n), info + i,
                  converges[static_cast<size_t>(i)]);
    }
  });
}

template <typename T>
cusolverStatus_t CusolverApi<T>::SyevdSize(Handle handle, cusolverEigMode_t,
                                           cublasFillMode_t, int n, const T*,
                                           int lda, const Real*, int* count) {
  if (!IsUsable(handle) || n < 1 || lda < n) return kInvalid;
  *count = CountFor(n, n);
  return kSuccess;
}
template <typename T>
cusolverStatus_t CusolverApi<T>::Syevd(Handle handle, cusolverEigMode_t mode,
                                       cublasFillMode_t fill, int n, T* a,
                                       int lda, Real* w, T* work, int count,
                                       int* info) {
  const Place<T> matrix{n, n, a, lda};
  if (!IsUsable(handle) || mode != CUSOLVER_EIG_MODE_VECTOR ||
      fill != CUBLAS_FILL_MODE_LOWER || !matrix.is_valid() ||
      count < CountFor(n, n)) {
    return kInvalid;
  }
  return Queue(handle, [=, converges = !IsRefused()] {
    SpoilWork(work, CountFor(n, n));
    DiagonalizeAt(matrix, w, info, converges);
  });
}

template <typename T>
cusolverStatus_t CusolverApi<T>::SyevjBatchedSize(
    Handle handle, cusolverEigMode_t, cublasFillMode_t, int n, const T*,
    int lda, const Real*, int* count, syevjInfo_t params, int batch) {
  if (!IsUsable(handle) || n < 1 || lda < n || batch < 1 || params == nullptr) {
    return kInvalid;
  }
  *count = CountFor(n, n) * batch;
  return kSuccess;
}
template <typename T>
cusolverStatus_t CusolverApi<T>::SyevjBatched(Handle handle,
                                              cusolverEigMode_t mode,
                                              cublasFillMode_t fill, int n,
                                              T* a, int lda, Real* w, T* work,
                                              int count, int* info,
                                              syevjInfo_t params, int batch) {
  const Place<T> matrix{n, n, a, lda};
  if (!IsUsable(handle) || mode != CUSOLVER_EIG_MODE_VECTOR ||
      fill != CUBLAS_FILL_MODE_LOWER || !matrix.is_valid() || batch < 1 ||
      count < CountFor(n, n) * batch || params == nullptr) {
    return kInvalid;
  }
  std::vector<bool> converges;
  for (int i = 0; i < batch; ++i) converges.push_back(!IsRefused());
  return Queue(handle, [=] {
    SpoilWork(work, CountFor(n, n) * batch);
    for (int64_t i = 0; i < batch; ++i) {
      DiagonalizeAt(Place<T>{n, n, a + i * lda * n, lda}, w + i * n, info + i,
                    converges[static_cast<size_t>(i)]);
    }
  });
}

template <typename T>
cusolverStatus_t CusolverApi<T>::PotrfSize(Handle handle, cublasFillMode_t,
                                           int n, T*, int lda, int* count) {
  if (!IsUsable(handle) || n < 1 || lda < n) return kInvalid;
  *count = CountFor(n, n);
  return kSuccess;
}
template <typename T>
cusolverStatus_t CusolverApi<T>::Potrf(Handle handle, cublasFillMode_t fill,
                                       int n, T* a, int lda, T* work, int count,
                                       int* info) {
  const Place<T> matrix{n, n, a, lda};
  if (!IsUsable(handle) || fill != CUBLAS_FILL_MODE_LOWER ||
      !matrix.is_valid() || count < CountFor(n, n)) {
    return kInvalid;
  }
  return Queue(handle, [=] {
    SpoilWork(work, CountFor(n, n));
    *info = FactorCholeskyAt(matrix);
  });
}
template <typename T>
cusolverStatus_t CusolverApi<T>::PotrfBatched(Handle handle,
                                              cublasFillMode_t fill, int n,
                                              T* a[], int lda, int* info,
                                              int batch) {
  if (!IsUsable(handle) || fill != CUBLAS_FILL_MODE_LOWER || n < 1 || lda < n ||
      a == nullptr || batch < 1) {
    return kInvalid;
  }
  return Queue(handle, [=] {
    for (int i = 0; i < batch; ++i) {
      const Place<T> matrix{n, n, a[i], lda};
      info[i] = FactorCholeskyAt(matrix);
      matrix.Spoil(/*above_diagonal_alone=*/true);
    }
  });
}

template <typename T>
cusolverStatus_t CusolverApi<T>::GetrfSize(Handle handle, int m, int n, T*,
                                           int lda, int* count) {
  if (!IsUsable(handle) || m < 1 || n != m || lda < m) return kInvalid;
  *count = CountFor(m, n);
  return kSuccess;
}
template <typename T>
cusolverStatus_t CusolverApi<T>::Getrf(Handle handle, int m, int n, T* a,
                                       int lda, T* work, int* pivots,
                                       int* info) {
  const Place<T> matrix{m, n, a, lda};
  if (!IsUsable(handle) || n != m || !matrix.is_valid() || pivots == nullptr) {
    return kInvalid;
  }
  return Queue(handle, [=] {
    SpoilWork(work, CountFor(m, n));
    NumberMatrix own = matrix.Load();
    std::vector<int> chosen;
    *info = FactorLu(own, chosen);
    matrix.Store(own);
    for (int k = 0; k < n; ++k) pivots[k] = chosen[static_cast<size_t>(k)];
  });
}
template <typename T>
cusolverStatus_t CusolverApi<T>::Getrs(Handle handle, cublasOperation_t op,
                                       int n, int sides, const T* a, int lda,
                                       const int* pivots, T* b, int ldb,
                                       int* info) {
  const Place<const T> matrix{n, n, a, lda};
  const Place<T> own{n, sides, b, ldb};
  if (!IsUsable(handle) || op != CUBLAS_OP_N || !matrix.is_valid() ||
      !own.is_valid() || info == nullptr) {
    return kInvalid;
  }
  return Queue(handle, [=] {
    NumberMatrix solved = own.Load();
    SolveLu(matrix.Load(), {pivots, pivots + n}, solved);
    own.Store(solved);
    *info = 0;
  });
}

template struct CusolverApi<float>;
template struct CusolverApi<double>;
template struct CusolverApi<cuComplex>;
template struct CusolverApi<cuDoubleComplex>;

}  // namespace tensord::simt

extern "C" {

cusolverStatus_t cusolverGetVersion(int* version) {
  *version = 12004;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) {
    return CUSOLVER_STATUS_NOT_INITIALIZED;
  }
  *handle = new cusolverDnContext{device, nullptr};
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
  delete handle;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle,
                                     cudaStream_t streamId) {
  handle->stream = streamId;
  return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t* info) {
  *info = new gesvdjInfo;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroyGesvdjInfo(gesvdjInfo_t info) {
  delete info;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnCreateSyevjInfo(syevjInfo_t* info) {
  *info = new syevjInfo;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroySyevjInfo(syevjInfo_t info) {
  delete info;
  return CUSOLVER_STATUS_SUCCESS;
}

}  // extern "C"
