// What every kernel that factorizes must do: a = q * r, q's columns
// orthonormal, r triangular with a diagonal that is real and not negative. Sums
// run in long double, element by element, by the labels of modes.
#include <complex>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/problem/factorization_problem.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/matrix/factorization_operands.h"
#include "tests/conformance/matrix/matrix_conformance.h"

namespace tensord::core {
namespace {

template <typename T>
struct Factorized {
  Shape shape;
  FactorizationDesc desc;
  SharedArray<T> a, q, r;

  Wide A(int64_t b, int64_t i, int64_t j) const {
    return Wide(a[OffsetIn(desc.a, shape.At(b, i, j, 0))]);
  }
  Wide Q(int64_t b, int64_t i, int64_t k) const {
    return Wide(q[OffsetIn(desc.left, shape.At(b, i, 0, k))]);
  }
  Wide R(int64_t b, int64_t k, int64_t j) const {
    return Wide(r[OffsetIn(*desc.right, shape.At(b, 0, j, k))]);
  }
};

/// Runs `kernel` on random modes, layouts and numbers; `repeats`: all columns
/// of a matrix are the same.
template <typename T>
Factorized<T> Factorize(Backend& backend, const FactorizationKernel& kernel,
                        ElementType type, const Shape& shape, bool repeats,
                        std::mt19937& rng) {
  Factorized<T> done{.shape = shape};
  Modes batch, rows, columns;
  std::vector<int64_t> extents;
  const auto add = [&](const std::vector<int64_t>& from, Modes& to) {
    for (const int64_t extent : from) {
      to.push_back(static_cast<Mode>(extents.size()));
      extents.push_back(extent);
    }
  };
  add(shape.batch, batch);
  add(shape.rows, rows);
  add(shape.columns, columns);
  extents.push_back(shape.inner());
  const Modes inner = {static_cast<Mode>(extents.size() - 1)};
  const auto joined = [](const Modes& x, const Modes& y, const Modes& z) {
    Modes all = x;
    all.insert(all.end(), y.begin(), y.end());
    all.insert(all.end(), z.begin(), z.end());
    return all;
  };
  done.desc.a =
      RandomOperand(type, joined(batch, rows, columns), extents, false, rng);
  done.desc.left =
      RandomOperand(type, joined(inner, rows, batch), extents, false, rng);
  // The order of r's modes numbers the columns.
  done.desc.right =
      RandomOperand(type, joined(batch, inner, columns), extents, true, rng);
  EXPECT_EQ(Validate(done.desc), absl::OkStatus());
  done.a =
      SharedArray<T>(backend, SpanElements(done.desc.a.layout), Sentinel<T>());
  done.q = SharedArray<T>(backend, SpanElements(done.desc.left.layout) + 1,
                          Sentinel<T>());
  done.r = SharedArray<T>(backend, SpanElements(done.desc.right->layout) + 1,
                          Sentinel<T>());
  std::uniform_real_distribution<double> number(-1, 1);
  for (int64_t b = 0; b < Shape::Product(shape.batch); ++b) {
    for (int64_t i = 0; i < shape.row_count(); ++i) {
      T value = {};
      for (int64_t j = 0; j < shape.column_count(); ++j) {
        if (j == 0 || !repeats) {
          if constexpr (std::is_floating_point_v<T>) {
            value = static_cast<T>(number(rng));
          } else {
            value = T(number(rng), number(rng));
          }
        }
        done.a[OffsetIn(done.desc.a, done.shape.At(b, i, j, 0))] = value;
      }
    }
  }
  EXPECT_EQ(
      RunKernel(
          backend, kernel, Canonicalize(done.desc),
          {.a = done.a.data(), .left = done.q.data(), .right = done.r.data()}),
      absl::OkStatus());
  return done;
}

using Rows = std::vector<std::vector<Wide>>;

/// A matrix by the elements that `at` gives, which takes longer than sums do.
template <typename At>
Rows RowsOf(int64_t row_count, int64_t column_count, At&& at) {
  Rows rows(row_count, std::vector<Wide>(column_count));
  for (int64_t i = 0; i < row_count; ++i) {
    for (int64_t j = 0; j < column_count; ++j) rows[i][j] = at(i, j);
  }
  return rows;
}

/// Judges one matrix. Bounds are those of Higham, Accuracy and Stability of
/// Numerical Algorithms, theorem 19.4 and (19.13): each column of a - q * r has
/// at most the norm of a's column times sqrt(k) times gamma(c m k), and q
/// differs from orthonormal columns by as much; c = 8 counts what a reflection
/// of complex numbers rounds an element. That r's diagonal is not negative
/// costs more. The phase of a diagonal element is good to 3 u, by the absolute
/// value (2 u) and a division, and goes into q and r; products of complex
/// numbers round by sqrt(5) u each, storing by u each: 6 + 4.5 + 2 of each term
/// of q * r, whose sum over k is at most sqrt(k) times the norm of a's column.
template <typename T, typename Real>
void Judge(const Factorized<T>& done, int64_t b, Real) {
  const int64_t m = done.shape.row_count(), n = done.shape.column_count(),
                k = done.shape.inner();
  const Rows a = RowsOf(m, n, [&](auto i, auto j) { return done.A(b, i, j); });
  const Rows q = RowsOf(m, k, [&](auto i, auto l) { return done.Q(b, i, l); });
  const Rows r = RowsOf(k, n, [&](auto l, auto j) { return done.R(b, l, j); });
  const long double u = std::numeric_limits<Real>::epsilon() / 2;
  const long double bound = (8 * static_cast<long double>(m) * k + 13) *
                            std::sqrt(static_cast<long double>(k)) * u;
  for (int64_t j = 0; j < n; ++j) {
    long double of_a = 0, of_error = 0;
    for (int64_t i = 0; i < m; ++i) {
      Wide sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += q[i][l] * r[l][j];
      of_a += std::norm(a[i][j]);
      of_error += std::norm(a[i][j] - sum);
    }
    ASSERT_LE(std::sqrt(of_error), bound * std::sqrt(of_a)) << "column " << j;
  }
  long double of_deviation = 0;
  for (int64_t x = 0; x < k; ++x) {
    for (int64_t y = 0; y < k; ++y) {
      Wide product = x == y ? -1 : 0;
      for (int64_t i = 0; i < m; ++i) product += std::conj(q[i][x]) * q[i][y];
      of_deviation += std::norm(product);
    }
    ASSERT_EQ(r[x][x].imag(), 0) << "diagonal " << x;
    ASSERT_GE(r[x][x].real(), 0) << "diagonal " << x;
    for (int64_t j = 0; j < x; ++j) {
      ASSERT_EQ(r[x][j], Wide(0)) << "row " << x << ", column " << j;
    }
  }
  ASSERT_LE(std::sqrt(of_deviation), 2 * bound);
}

/// Elements between those of `factor` are as they were.
template <typename T>
void ExpectGapsUntouched(const OperandDesc& factor,
                         const SharedArray<T>& memory, int64_t element_count) {
  int64_t written = 0;
  for (const T& value : memory) written += !IsSentinel(value);
  EXPECT_EQ(written, element_count) << ToString(factor.layout.extents);
}

template <typename T>
void Check(Backend& backend, const FactorizationKernel& kernel,
           ElementType type, const Shape& shape, bool repeats,
           std::mt19937& rng) {
  SCOPED_TRACE(absl::StrCat(NameOf(type), ", ", shape.row_count(), " x ",
                            shape.column_count()));
  const Factorized<T> done =
      Factorize<T>(backend, kernel, type, shape, repeats, rng);
  const int64_t batch = Shape::Product(shape.batch);
  for (int64_t b = 0; b < batch; ++b) {
    if constexpr (std::is_floating_point_v<T>) {
      ASSERT_NO_FATAL_FAILURE(Judge(done, b, T()));
    } else {
      ASSERT_NO_FATAL_FAILURE(Judge(done, b, typename T::value_type()));
    }
  }
  ExpectGapsUntouched(done.desc.left, done.q,
                      batch * shape.row_count() * shape.inner());
  ExpectGapsUntouched(*done.desc.right, done.r,
                      batch * shape.column_count() * shape.inner());
}

void CheckAllTypes(Backend& backend, const FactorizationKernel& kernel,
                   const Shape& shape, std::mt19937& rng,
                   bool repeats = false) {
  Check<float>(backend, kernel, ElementType::kFloat32, shape, repeats, rng);
  Check<double>(backend, kernel, ElementType::kFloat64, shape, repeats, rng);
  Check<std::complex<float>>(backend, kernel, ElementType::kComplex64, shape,
                             repeats, rng);
  Check<std::complex<double>>(backend, kernel, ElementType::kComplex128, shape,
                              repeats, rng);
}

TEST_P(FactorizationConformance, FactorizesRandomMatrices) {
  ForEachKernel(
      FactorizationMethod::kQr, [&](const FactorizationKernel& kernel) {
        for (uint32_t seed = 0; seed < 60; ++seed) {
          SCOPED_TRACE(seed);
          std::mt19937 rng(seed);
          const auto extents = [&](size_t most_modes, int64_t most) {
            std::vector<int64_t> chosen(rng() % (most_modes + 1));
            for (int64_t& extent : chosen) {
              extent = 1 + static_cast<int64_t>(rng() % most);
            }
            return chosen;
          };
          CheckAllTypes(*backend_, kernel,
                        {extents(2, 3), extents(2, 6), extents(3, 5)}, rng);
        }
      });
}

TEST_P(FactorizationConformance, FactorizesMatricesInBlocks) {
  ForEachKernel(FactorizationMethod::kQr,
                [&](const FactorizationKernel& kernel) {
                  std::mt19937 rng(7);
                  CheckAllTypes(*backend_, kernel, {{}, {90}, {70}}, rng);
                  CheckAllTypes(*backend_, kernel, {{}, {70}, {90}}, rng);
                  CheckAllTypes(*backend_, kernel, {{3}, {130}, {2, 4}}, rng);
                });
}

// So large that no call of LAPACK does all of it.
TEST_P(FactorizationConformance, FactorizesLargeMatricesInPanels) {
  const FactorizationKernel& kernel = *backend_->kernels().factorization[0];
  ASSERT_EQ(kernel.name(), GetParam().kernels.at(FactorizationMethod::kQr)[0]);
  std::mt19937 rng(9);
  using Complex = std::complex<double>;
  Check<Complex>(*backend_, kernel, ElementType::kComplex128,
                 {{}, {300}, {292}},
                 /*repeats=*/false, rng);
  Check<Complex>(*backend_, kernel, ElementType::kComplex128,
                 {{}, {296}, {330}},
                 /*repeats=*/false, rng);
}

TEST_P(FactorizationConformance, ColumnsThatRepeatGiveZerosAndOrthonormalQ) {
  ForEachKernel(FactorizationMethod::kQr, [&](const FactorizationKernel&
                                                  kernel) {
    std::mt19937 rng(11);
    CheckAllTypes(*backend_, kernel, {{2}, {12}, {5}}, rng, /*repeats=*/true);
    CheckAllTypes(*backend_, kernel, {{}, {3}, {5}}, rng, /*repeats=*/true);
  });
}

TEST_P(FactorizationConformance, WideMatricesTakeAFewTimesTheirOwnMemory) {
  const FactorizationDesc row{
      .a = {ElementType::kFloat64, {{1, 4096}, {1, 1}}, {0, 1}},
      .left = {ElementType::kFloat64, {{1, 1}, {1, 1}}, {0, 2}},
      .right = OperandDesc{ElementType::kFloat64, {{1, 4096}, {1, 1}}, {2, 1}}};
  ForEachKernel(FactorizationMethod::kQr,
                [&](const FactorizationKernel& kernel) {
                  const auto solution = kernel.Solve(Canonicalize(row)).value();
                  EXPECT_LE(solution->workspace_bytes(), 4 * 4096 * 8);
                });
}

TEST_P(FactorizationConformance, HugeAndTinyNumbersStayFinite) {
  ForEachKernel(
      FactorizationMethod::kQr, [&](const FactorizationKernel& kernel) {
        for (const double scale : {1e-300, 1e300}) {
          const FactorizationDesc desc{
              .a = {ElementType::kFloat64, {{2, 2}, {1, 2}}, {0, 1}},
              .left = {ElementType::kFloat64, {{2, 2}, {1, 2}}, {0, 2}},
              .right =
                  OperandDesc{ElementType::kFloat64, {{2, 2}, {1, 2}}, {2, 1}}};
          const SharedArray<double> a(*backend_, 4, 0.0), q(*backend_, 4, 0.0),
              r(*backend_, 4, 0.0);
          a[0] = 3 * scale;
          a[1] = 4 * scale;
          a[3] = scale;
          ASSERT_EQ(
              RunKernel(*backend_, kernel, Canonicalize(desc),
                        {.a = a.data(), .left = q.data(), .right = r.data()}),
              absl::OkStatus());
          constexpr double kBound =
              (8 * 2 * 2 + 13) * std::numeric_limits<double>::epsilon();
          EXPECT_NEAR(r[0] / scale, 5, 5 * kBound);
          EXPECT_NEAR(q[0], 0.6, kBound);
        }
      });
}

}  // namespace
}  // namespace tensord::core
