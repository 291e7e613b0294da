// Matrices in long double, and kernels that decompose them.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/matrix/factorization_operands.h"

namespace tensord::core {

using Method = FactorizationMethod;

template <typename T>
using RealOf = decltype(std::abs(T()));

/// A matrix, by rows.
struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<Wide> elements;

  Matrix(int64_t m, int64_t n)
      : rows(m), columns(n), elements(static_cast<size_t>(m * n)) {}
  Wide& operator()(int64_t i, int64_t j) {
    return elements[static_cast<size_t>(i * columns + j)];
  }
  const Wide& operator()(int64_t i, int64_t j) const {
    return elements[static_cast<size_t>(i * columns + j)];
  }
  long double norm() const {
    long double squares = 0;
    for (const Wide& element : elements) squares += std::norm(element);
    return std::sqrt(squares);
  }
};

inline Matrix Product(const Matrix& x, const Matrix& y) {
  Matrix product(x.rows, y.columns);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t k = 0; k < x.columns; ++k) {
      for (int64_t j = 0; j < y.columns; ++j) {
        product(i, j) += x(i, k) * y(k, j);
      }
    }
  }
  return product;
}

inline Matrix Adjoint(const Matrix& x) {
  Matrix adjoint(x.columns, x.rows);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.columns; ++j) adjoint(j, i) = std::conj(x(i, j));
  }
  return adjoint;
}

inline Matrix Difference(Matrix x, const Matrix& y) {
  for (size_t i = 0; i < x.elements.size(); ++i) x.elements[i] -= y.elements[i];
  return x;
}

inline Matrix Diagonal(const std::vector<long double>& values) {
  const auto n = std::ssize(values);
  Matrix diagonal(n, n);
  for (int64_t k = 0; k < n; ++k)
    diagonal(k, k) = values[static_cast<size_t>(k)];
  return diagonal;
}

inline Matrix FirstColumns(const Matrix& x, int64_t count) {
  Matrix first(x.rows, count);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < count; ++j) first(i, j) = x(i, j);
  }
  return first;
}

/// How far the columns are from orthonormal ones.
inline long double Deviation(const Matrix& x) {
  return Difference(Product(Adjoint(x), x),
                    Diagonal(std::vector<long double>(
                        static_cast<size_t>(x.columns), 1)))
      .norm();
}

inline Wide RandomNumber(bool is_complex, std::mt19937& rng) {
  std::uniform_real_distribution<long double> uniform(-1, 1);
  const long double real = uniform(rng);
  return {real, is_complex ? uniform(rng) : 0};
}

inline Matrix RandomMatrix(int64_t m, int64_t n, bool is_complex,
                           std::mt19937& rng) {
  Matrix matrix(m, n);
  for (Wide& element : matrix.elements) element = RandomNumber(is_complex, rng);
  return matrix;
}

/// Orthonormal columns, by Gram and Schmidt, twice.
inline Matrix RandomOrthonormal(int64_t m, int64_t n, bool is_complex,
                                std::mt19937& rng) {
  Matrix q = RandomMatrix(m, n, is_complex, rng);
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t k = 0; k < j; ++k) {
        Wide part = 0;
        for (int64_t i = 0; i < m; ++i) part += std::conj(q(i, k)) * q(i, j);
        for (int64_t i = 0; i < m; ++i) q(i, j) -= part * q(i, k);
      }
      long double squares = 0;
      for (int64_t i = 0; i < m; ++i) squares += std::norm(q(i, j));
      for (int64_t i = 0; i < m; ++i) q(i, j) /= std::sqrt(squares);
    }
  }
  return q;
}

template <typename T>
inline constexpr bool kHasImaginaryPart = !std::is_floating_point_v<T>;

template <typename T>
T Rounded(const Wide& x) {
  using Real = RealOf<T>;
  if constexpr (kHasImaginaryPart<T>) {
    return {static_cast<Real>(x.real()), static_cast<Real>(x.imag())};
  } else {
    return static_cast<T>(x.real());
  }
}

/// What a kernel has made, one entry for each value of the batch modes.
struct Made {
  absl::Status status;
  std::vector<Matrix> a, left, right;
  std::vector<std::vector<long double>> values;
  int64_t kept = -1;
};

/// How a kernel is asked.
struct Asked {
  Method method;
  ElementType type;
  Shape shape;  // columns of EIGH and CHOLESKY are its rows
  int64_t inner;
  bool has_values;
  Truncation truncation = {};
  std::optional<Sampling> sampling = {};
};

/// Which elements of a matrix are read.
inline bool IsRead(Method method, int64_t row, int64_t column) {
  return (method != Method::kEigh && method != Method::kCholesky) ||
         row >= column;
}

/// Runs a kernel on matrices in tensors of modes and layouts of any order, and
/// checks that nothing was written between the elements.
template <typename T>
class Runner {
 public:
  Runner(const Asked& asked, std::mt19937& rng) : asked_(asked) {
    Modes batch, rows, columns;
    const auto add = [&](const std::vector<int64_t>& from, Modes& to) {
      for (const int64_t extent : from) {
        to.push_back(static_cast<Mode>(extents_.size()));
        extents_.push_back(extent);
      }
    };
    add(asked.shape.batch, batch);
    add(asked.shape.rows, rows);
    add(asked.shape.columns, columns);
    extents_.push_back(asked.inner);
    const Modes inner = {static_cast<Mode>(extents_.size() - 1)};
    const bool is_pair =
        asked.method != Method::kEigh && asked.method != Method::kCholesky;
    desc_.method = asked.method;
    desc_.sampling = asked.sampling;
    // Rows and columns are numbered by the factors, or by a.
    desc_.a = RandomOperand(asked.type, Joined(batch, rows, columns), extents_,
                            !is_pair, rng);
    desc_.left = RandomOperand(asked.type, Joined(batch, rows, inner), extents_,
                               true, rng);
    if (is_pair) {
      desc_.right = RandomOperand(asked.type, Joined(inner, batch, columns),
                                  extents_, true, rng);
    }
    if (asked.has_values) {
      desc_.values =
          RandomOperand(RealPartOf(asked.type), Joined(inner, batch, {}),
                        extents_, false, rng);
    }
    EXPECT_EQ(Validate(desc_), absl::OkStatus());
  }

  /// `matrices` are rounded; what is not to be read becomes NaN.
  Made Run(Backend& backend, const FactorizationKernel& kernel,
           const std::vector<Matrix>& matrices) {
    using Real = RealOf<T>;
    constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
    const SharedArray<T> a(backend, SpanElements(desc_.a.layout), T(kNan));
    Made made;
    for (int64_t b = 0; b < std::ssize(matrices); ++b) {
      Matrix& own = made.a.emplace_back(matrices[static_cast<size_t>(b)]);
      for (int64_t i = 0; i < own.rows; ++i) {
        for (int64_t j = 0; j < own.columns; ++j) {
          const T element = Rounded<T>(own(i, j));
          own(i, j) = Wide(element);
          if (!IsRead(asked_.method, i, j)) continue;
          a[OffsetIn(desc_.a, asked_.shape.At(b, i, j, 0))] = element;
        }
      }
    }
    // Where there is no such factor, an element that must stay as it is.
    const auto room_for = [](const std::optional<OperandDesc>& factor) {
      return factor ? SpanElements(factor->layout) + 1 : 1;
    };
    const SharedArray<T> left(backend, room_for(desc_.left), Sentinel<T>());
    const SharedArray<T> right(backend, room_for(desc_.right), Sentinel<T>());
    const SharedArray<Real> values(backend, room_for(desc_.values),
                                   Sentinel<Real>());
    made.status = RunKernel(
        backend, kernel, Canonicalize(desc_),
        {.a = a.data(),
         .left = desc_.method == Method::kLq ? right.data() : left.data(),
         .right = !desc_.right                  ? nullptr
                  : desc_.method == Method::kLq ? left.data()
                                                : right.data(),
         .values = desc_.values ? values.data() : nullptr,
         .truncation = asked_.truncation,
         .kept = &made.kept});
    if (!made.status.ok()) return made;
    const auto written = [](const auto& memory) {
      return std::ranges::count_if(
          memory, [](const auto& x) { return !IsSentinel(x); });
    };
    const int64_t batch = std::ssize(matrices), m = asked_.shape.row_count(),
                  n = asked_.shape.column_count(), k = asked_.inner;
    EXPECT_EQ(written(left), batch * m * k);
    EXPECT_EQ(written(right), desc_.right ? batch * n * k : 0);
    EXPECT_EQ(written(values), desc_.values ? batch * k : 0);
    for (int64_t b = 0; b < batch; ++b) {
      Matrix& own_left = made.left.emplace_back(m, k);
      Matrix& own_right = made.right.emplace_back(k, n);
      std::vector<long double>& own_values = made.values.emplace_back();
      for (int64_t x = 0; x < k; ++x) {
        for (int64_t i = 0; i < m; ++i) {
          own_left(i, x) =
              Wide(left[OffsetIn(desc_.left, asked_.shape.At(b, i, 0, x))]);
        }
        for (int64_t j = 0; j < n && desc_.right; ++j) {
          own_right(x, j) =
              Wide(right[OffsetIn(*desc_.right, asked_.shape.At(b, 0, j, x))]);
        }
        if (!desc_.values) continue;
        own_values.push_back(
            values[OffsetIn(*desc_.values, asked_.shape.At(b, 0, 0, x))]);
      }
    }
    return made;
  }

 private:
  const Asked asked_;
  std::vector<int64_t> extents_;
  FactorizationDesc desc_;
};

}  // namespace tensord::core
