#include "tests/simt/cusolver/blas_routines.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "tests/simt/cusolver/decompose.h"
#include "tests/simt/cusolver/matrix_place.h"
#include "tests/simt/fake_runtime.h"

struct cublasContext {
  int device;
  cudaStream_t stream;
};

namespace tensord::simt {
namespace {

constexpr cublasStatus_t kInvalidBlas = CUBLAS_STATUS_INVALID_VALUE;

bool IsUsable(cublasHandle_t handle) {
  int device = -1;
  return handle != nullptr && cudaGetDevice(&device) == cudaSuccess &&
         device == handle->device;
}

cublasStatus_t QueueBlas(cublasHandle_t handle, std::function<void()> run) {
  return QueueLibraryCall(handle->stream, std::move(run)) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}

/// What the product asks for, of a factor of 1.
template <typename T>
bool IsSupported(cublasSideMode_t side, cublasOperation_t op, const T* alpha) {
  return side == CUBLAS_SIDE_LEFT && op != CUBLAS_OP_T &&
         Read(*alpha) == Number(1);
}

TriangleOf Triangle(cublasFillMode_t fill, cublasOperation_t op,
                    cublasDiagType_t diagonal) {
  return {.is_lower = fill == CUBLAS_FILL_MODE_LOWER,
          .is_adjoint = op == CUBLAS_OP_C,
          .has_unit_diagonal = diagonal == CUBLAS_DIAG_UNIT};
}

template <typename T>
void SolveAt(const Place<const T>& a, const TriangleOf& triangle,
             const Place<T>& b) {
  NumberMatrix sides = b.Load();
  SolveTriangle(a.LoadTriangle(triangle.is_lower), triangle, sides);
  b.Store(sides);
}

}  // namespace

template <typename T>
cublasStatus_t CublasApi<T>::Trsm(Handle handle, cublasSideMode_t side,
                                  cublasFillMode_t fill, cublasOperation_t op,
                                  cublasDiagType_t diagonal, int m, int n,
                                  const T* alpha, const T* a, int lda, T* b,
                                  int ldb) {
  const Place<const T> matrix{m, m, a, lda};
  const Place<T> sides{m, n, b, ldb};
  if (!IsUsable(handle) || !IsSupported(side, op, alpha) ||
      !matrix.is_valid() || !sides.is_valid()) {
    return kInvalidBlas;
  }
  return QueueBlas(
      handle, [=] { SolveAt(matrix, Triangle(fill, op, diagonal), sides); });
}

template <typename T>
cublasStatus_t CublasApi<T>::TrsmBatched(Handle handle, cublasSideMode_t side,
                                         cublasFillMode_t fill,
                                         cublasOperation_t op,
                                         cublasDiagType_t diagonal, int m,
                                         int n, const T* alpha,
                                         const T* const a[], int lda,
                                         T* const b[], int ldb, int batch) {
  if (!IsUsable(handle) || !IsSupported(side, op, alpha) || m < 1 || n < 1 ||
      lda < m || ldb < m || batch < 1) {
    return kInvalidBlas;
  }
  return QueueBlas(handle, [=] {
    for (int i = 0; i < batch; ++i) {
      SolveAt(Place<const T>{m, m, a[i], lda}, Triangle(fill, op, diagonal),
              Place<T>{m, n, b[i], ldb});
    }
  });
}

/// Supports what the product asks for: neither transposed, factors of 1 and 0.
template <typename T>
cublasStatus_t CublasApi<T>::GemmStridedBatched(
    Handle handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
    int k, const T* alpha, const T* a, int lda, long long a_stride, const T* b,
    int ldb, long long b_stride, const T* beta, T* c, int ldc,
    long long c_stride, int batch) {
  const auto is_apart = [&](const T* x) {
    return x + (batch - 1) * std::max(a_stride, b_stride) < c ||
           c + (batch - 1) * c_stride < x;
  };
  if (!IsUsable(handle) || op_a != CUBLAS_OP_N || op_b != CUBLAS_OP_N ||
      Read(*alpha) != Number(1) || Read(*beta) != Number(0) || batch < 1 ||
      !Place<const T>{m, k, a, lda}.is_valid() ||
      !Place<const T>{k, n, b, ldb}.is_valid() ||
      !Place<T>{m, n, c, ldc}.is_valid() || !is_apart(a) || !is_apart(b)) {
    return kInvalidBlas;
  }
  return QueueBlas(handle, [=] {
    for (int i = 0; i < batch; ++i) {
      const NumberMatrix x = Place<const T>{m, k, a + i * a_stride, lda}.Load();
      const NumberMatrix y = Place<const T>{k, n, b + i * b_stride, ldb}.Load();
      NumberMatrix product(m, n);
      for (int64_t column = 0; column < n; ++column) {
        for (int64_t inner = 0; inner < k; ++inner) {
          for (int64_t row = 0; row < m; ++row) {
            product(row, column) += x(row, inner) * y(inner, column);
          }
        }
      }
      Place<T>{m, n, c + i * c_stride, ldc}.Store(product);
    }
  });
}

template <typename T>
cublasStatus_t CublasApi<T>::GetrfBatched(Handle handle, int n, T* const a[],
                                          int lda, int* pivots, int* info,
                                          int batch) {
  if (!IsUsable(handle) || n < 1 || lda < n || pivots == nullptr || batch < 1) {
    return kInvalidBlas;
  }
  return QueueBlas(handle, [=] {
    for (int i = 0; i < batch; ++i) {
      const Place<T> matrix{n, n, a[i], lda};
      NumberMatrix own = matrix.Load();
      std::vector<int> chosen;
      info[i] = FactorLu(own, chosen);
      matrix.Store(own);
      for (int k = 0; k < n; ++k) {
        pivots[i * n + k] = chosen[static_cast<size_t>(k)];
      }
    }
  });
}

template <typename T>
cublasStatus_t CublasApi<T>::GetrsBatched(Handle handle, cublasOperation_t op,
                                          int n, int sides, const T* const a[],
                                          int lda, const int* pivots,
                                          T* const b[], int ldb, int* info,
                                          int batch) {
  if (!IsUsable(handle) || op != CUBLAS_OP_N || n < 1 || sides < 1 || lda < n ||
      ldb < n || batch < 1) {
    return kInvalidBlas;
  }
  *info = 0;
  return QueueBlas(handle, [=] {
    for (int i = 0; i < batch; ++i) {
      const Place<T> own{n, sides, b[i], ldb};
      NumberMatrix solved = own.Load();
      SolveLu(Place<const T>{n, n, a[i], lda}.Load(),
              {pivots + i * n, pivots + (i + 1) * n}, solved);
      own.Store(solved);
    }
  });
}

template struct CublasApi<float>;
template struct CublasApi<double>;
template struct CublasApi<cuComplex>;
template struct CublasApi<cuDoubleComplex>;

}  // namespace tensord::simt

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  *handle = new cublasContext{device, nullptr};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle,
                                  cudaStream_t streamId) {
  handle->stream = streamId;
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
