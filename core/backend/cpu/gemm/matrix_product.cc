#include "core/backend/cpu/gemm/matrix_product.h"

#include <algorithm>
#include <complex>
#include <concepts>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/backend/cpu/block/contraction_arithmetic.h"
#include "core/backend/cpu/block/integer_block.h"
#include "core/device/interruption.h"

namespace tensord::core {
namespace {

/// Extents are handed to BLAS in pieces that its 32-bit integers can hold.
constexpr int64_t kLongest = int64_t{1} << 30;

struct StoredMatrix {
  MatrixOp op;
  int line;  // elements between lines
};

/// How BLAS is to read the matrix. Requires IsMatrix().
StoredMatrix Stored(int64_t rows, int64_t columns, int64_t row_stride,
                    int64_t column_stride, bool conjugate) {
  const bool by_columns =
      (row_stride == 1 || rows == 1) && (columns == 1 || column_stride >= rows);
  const auto line = [](int64_t fast, int64_t slow, int64_t slow_stride) {
    return static_cast<int>(slow == 1 ? std::max<int64_t>(fast, 1)
                                      : slow_stride);
  };
  if (by_columns) {
    return {conjugate ? MatrixOp::kConjugated : MatrixOp::kAsIs,
            line(rows, columns, column_stride)};
  }
  return {conjugate ? MatrixOp::kConjugateTransposed : MatrixOp::kTransposed,
          line(columns, rows, row_stride)};
}

/// y (d) as a matrix (a) times a vector (b): n is 1.
///
/// For real types only: some complex kernels of OpenBLAS read the vector beyond
/// its last element.
template <std::floating_point T>
void MultiplyByVector(const Blas& blas, const MatrixProduct& p, T alpha,
                      const T* a, const T* b, T beta, T* d) {
  for (int64_t i = 0; i < p.m; ++i) {
    T& element = d[i * p.d_m];
    element = beta == T(0) ? T(0) : beta * element;
  }
  const StoredMatrix matrix = Stored(p.m, p.k, p.a_m, p.a_k, false);
  const bool as_is = matrix.op == MatrixOp::kAsIs;
  const auto stride = [](int64_t extent, int64_t stride) {
    return static_cast<int>(extent == 1 ? 1 : stride);
  };
  blas.Gemv<T>({.op = matrix.op,
                .rows = static_cast<int>(as_is ? p.m : p.k),
                .columns = static_cast<int>(as_is ? p.k : p.m),
                .alpha = alpha,
                .a = a,
                .lda = matrix.line,
                .x = b,
                .x_stride = stride(p.k, p.b_k),
                .y = d,
                .y_stride = stride(p.m, p.d_m)});
}

/// Requires  extents up to kLongest.
template <typename T>
void MultiplyPiece(const Blas& blas, MatrixProduct p, bool conj_a, bool conj_b,
                   T alpha, const T* a, const T* b, T beta, T* d) {
  // BLAS writes columns: d by rows is d transposed, from b and a transposed.
  const bool by_columns =
      (p.d_m == 1 || p.m == 1) && (p.n == 1 || p.d_n >= p.m);
  constexpr bool kHasGemv = std::is_floating_point_v<T>;
  const bool is_vector = kHasGemv && (p.m == 1 || p.n == 1);
  if (is_vector ? p.n != 1 : !by_columns) {
    std::swap(p.m, p.n);
    std::swap(a, b);
    std::swap(conj_a, conj_b);
    p = {p.m, p.n, p.k, p.b_n, p.b_k, p.a_k, p.a_m, p.d_n, p.d_m};
  }
  if constexpr (kHasGemv) {
    if (is_vector) return MultiplyByVector(blas, p, alpha, a, b, beta, d);
  }
  const StoredMatrix stored_a = Stored(p.m, p.k, p.a_m, p.a_k, conj_a);
  const StoredMatrix stored_b = Stored(p.k, p.n, p.b_k, p.b_n, conj_b);
  blas.Gemm<T>({.op_a = stored_a.op,
                .op_b = stored_b.op,
                .m = static_cast<int>(p.m),
                .n = static_cast<int>(p.n),
                .k = static_cast<int>(p.k),
                .alpha = alpha,
                .a = a,
                .lda = stored_a.line,
                .b = b,
                .ldb = stored_b.line,
                .beta = beta,
                .c = d,
                .ldc = Stored(p.m, p.n, p.d_m, p.d_n, false).line});
}

/// Steps of k in which a product is handed to BLAS.
int64_t StepOfK(const MatrixProduct& p, int64_t most_terms) {
  constexpr int64_t kSmallest = 256;  // What a call costs is little then.
  // With a vector it waits for memory.
  if (p.m == 1 || p.n == 1) most_terms /= 16;
  return std::clamp(
      most_terms / std::min(p.m, kLongest) / std::min(p.n, kLongest), kSmallest,
      kLongest);
}

template <typename T>
void MultiplyByBlas(const Blas& blas, const MatrixProduct& p,
                    int64_t most_terms, bool conj_a, bool conj_b,
                    const Scalar& alpha, const T* a, const T* b,
                    const Scalar& beta, T* d) {
  const int64_t k_step = StepOfK(p, most_terms);
  for (int64_t m = 0; m < p.m; m += kLongest) {
    for (int64_t n = 0; n < p.n; n += kLongest) {
      for (int64_t k = 0; k < p.k; k += k_step) {
        if (CurrentWork::ShouldStop()) return;
        MatrixProduct piece = p;
        piece.m = std::min(kLongest, p.m - m);
        piece.n = std::min(kLongest, p.n - n);
        piece.k = std::min(k_step, p.k - k);
        MultiplyPiece<T>(blas, piece, conj_a, conj_b, FactorAs<T>(alpha),
                         a + m * p.a_m + k * p.a_k, b + k * p.b_k + n * p.b_n,
                         k == 0 ? FactorAs<T>(beta) : T(1),
                         d + m * p.d_m + n * p.d_n);
      }
    }
  }
}

/// Integers: blocks of a, b and d are copied to the stack as WrappingType, so
/// that the innermost loop runs over neighbours.
template <typename T>
void MultiplyIntegers(const MatrixProduct& p, const Scalar& alpha, const T* a,
                      const T* b, const Scalar& beta, T* d) {
  using Wide = WrappingType<T>;
  constexpr bool kIsBool = std::is_same_v<T, bool>;
  constexpr int64_t kBlockM = kIntegerBlockM, kBlockN = kIntegerBlockN,
                    kBlockK = kIntegerBlockK;
  const auto factor = [](const Scalar& scalar) {
    return kIsBool ? Wide{!scalar.IsZero()} : FactorAs<Wide>(scalar);
  };
  const Wide factor_a = factor(alpha), factor_d = factor(beta);
  Wide block_a[kBlockK * kBlockM] = {}, block_b[kBlockN * kBlockK];
  Wide sum[kBlockN * kBlockM];
  for (int64_t n0 = 0; n0 < p.n; n0 += kBlockN) {
    const int64_t n_count = std::min(kBlockN, p.n - n0);
    for (int64_t m0 = 0; m0 < p.m; m0 += kBlockM) {
      const int64_t m_count = std::min(kBlockM, p.m - m0);
      std::fill_n(sum, kBlockN * kBlockM, Wide{0});
      for (int64_t k0 = 0; k0 < p.k; k0 += kBlockK) {
        if (CurrentWork::ShouldStop()) return;
        const int64_t k_count = std::min(kBlockK, p.k - k0);
        for (int64_t k = 0; k < k_count; ++k) {
          for (int64_t m = 0; m < m_count; ++m) {
            block_a[k * kBlockM + m] =
                static_cast<Wide>(a[(m0 + m) * p.a_m + (k0 + k) * p.a_k]);
          }
        }
        for (int64_t n = 0; n < n_count; ++n) {
          for (int64_t k = 0; k < k_count; ++k) {
            block_b[n * kBlockK + k] =
                static_cast<Wide>(b[(k0 + k) * p.b_k + (n0 + n) * p.b_n]);
          }
        }
        if constexpr (kIsBool) {
          AndOrBlock(block_a, block_b, n_count, k_count, sum);
        } else {
          MultiplyIntegerBlock(block_a, block_b, n_count, k_count, sum);
        }
      }
      for (int64_t n = 0; n < n_count; ++n) {
        for (int64_t m = 0; m < m_count; ++m) {
          T& element = d[(m0 + m) * p.d_m + (n0 + n) * p.d_n];
          Wide value = factor_a * sum[n * kBlockM + m];
          if (factor_d != 0) value += factor_d * static_cast<Wide>(element);
          element = static_cast<T>(value);
        }
      }
    }
  }
}

}  // namespace

void Multiply(const Blas* blas, ElementType type, const MatrixProduct& product,
              int64_t most_terms, bool conj_a, bool conj_b, const Scalar& alpha,
              const void* a, const void* b, const Scalar& beta, void* d) {
  VisitElementType(type, [&]<typename T>(T) {
    const T* const typed_a = static_cast<const T*>(a);
    const T* const typed_b = static_cast<const T*>(b);
    T* const typed_d = static_cast<T*>(d);
    if constexpr (std::is_integral_v<T>) {
      MultiplyIntegers(product, alpha, typed_a, typed_b, beta, typed_d);
    } else if constexpr (std::is_floating_point_v<T> || kIsComplex<T>) {
      MultiplyByBlas(*blas, product, most_terms, conj_a, conj_b, alpha, typed_a,
                     typed_b, beta, typed_d);
    }
  });
}

}  // namespace tensord::core
