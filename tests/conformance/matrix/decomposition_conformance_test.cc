// What every kernel that decomposes must do: the factors multiply to a, and
// those that are to be orthonormal are. Singular values and eigenvalues are
// right then, by Weyl's theorem: none is further from the true one than the
// factors' product from a. Sums run in long double, by the labels of modes.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/matrix/decomposition_runner.h"
#include "tests/conformance/matrix/matrix_conformance.h"

namespace tensord::core {
namespace {

/// Higham, Accuracy and Stability of Numerical Algorithms, theorem 19.4 and
/// (19.13): a matrix of m x n that k reflections of m elements are applied to
/// comes out as that of a perturbed one, by at most sqrt(k) gamma(c m k) of its
/// norm; c = 8 counts what a reflection of complex numbers rounds an element,
/// 13 a phase and storing it. An SVD reflects from both sides and then rotates,
/// which is counted as twice as much again: a sweep of k rotations a column
/// rounds 6 k u of it, and some ten sweeps are far less than 8 m k.
template <typename T>
long double Bound(const Shape& shape) {
  const long double u = std::numeric_limits<RealOf<T>>::epsilon() / 2;
  const long double longer =
      std::max({shape.row_count(), shape.column_count(), int64_t{4}});
  const long double k = shape.inner();
  return 4 * (8 * longer * k + 13) * std::sqrt(k) * u;
}

/// All decompositions of one element type by one kernel.
template <typename T>
struct Decompositions {
  Backend& backend;
  const FactorizationKernel& kernel;
  ElementType type;
  std::mt19937& rng;

  std::vector<Matrix> RandomMatrices(const Shape& shape) const {
    std::vector<Matrix> matrices;
    for (int64_t b = 0; b < Shape::Product(shape.batch); ++b) {
      matrices.push_back(RandomMatrix(shape.row_count(), shape.column_count(),
                                      kHasImaginaryPart<T>, rng));
    }
    return matrices;
  }

  bool IsForShortSides() const {
    return kernel.name() == "cuda.factorize.eigh_jacobi";
  }

  Made Run(const Asked& asked, const std::vector<Matrix>& matrices) const {
    return Runner<T>(asked, rng).Run(backend, kernel, matrices);
  }

  void CheckSvd(const Shape& shape, const std::vector<Matrix>& matrices) const {
    const int64_t inner = shape.inner();
    const Made made = Run({Method::kSvd, type, shape, inner, true}, matrices);
    ASSERT_EQ(made.status, absl::OkStatus());
    EXPECT_EQ(made.kept, inner);
    const long double bound = Bound<T>(shape);
    for (size_t b = 0; b < matrices.size(); ++b) {
      const Matrix& u = made.left[b];
      const Matrix& v = made.right[b];
      const std::vector<long double>& s = made.values[b];
      EXPECT_TRUE(std::ranges::is_sorted(s, std::greater<>()));
      EXPECT_GE(s.back(), 0);
      EXPECT_LE(Deviation(u), bound);
      EXPECT_LE(Deviation(Adjoint(v)), bound);
      const Matrix product = Product(Product(u, Diagonal(s)), v);
      EXPECT_LE(Difference(made.a[b], product).norm(),
                bound * made.a[b].norm());
    }
  }

  void CheckLq(const Shape& shape) const {
    const int64_t inner = shape.inner();
    const Made made =
        Run({Method::kLq, type, shape, inner, false}, RandomMatrices(shape));
    ASSERT_EQ(made.status, absl::OkStatus());
    const long double bound = Bound<T>(shape);
    for (size_t b = 0; b < made.a.size(); ++b) {
      const Matrix& l = made.left[b];
      EXPECT_LE(Deviation(Adjoint(made.right[b])), bound);
      EXPECT_LE(Difference(made.a[b], Product(l, made.right[b])).norm(),
                bound * made.a[b].norm());
      for (int64_t k = 0; k < inner; ++k) {
        EXPECT_EQ(l(k, k).imag(), 0);
        EXPECT_GE(l(k, k).real(), 0);
        for (int64_t i = 0; i < std::min(k, l.rows); ++i) {
          EXPECT_EQ(l(i, k), Wide(0)) << "row " << i << ", column " << k;
        }
      }
    }
  }

  /// `shape` has rows; columns are made like them.
  void CheckEigh(Shape shape, long double scale = 1) const {
    shape.columns = shape.rows;
    std::vector<Matrix> matrices = RandomMatrices(shape);
    for (Matrix& matrix : matrices) {
      const Matrix adjoint = Adjoint(matrix);
      for (size_t i = 0; i < matrix.elements.size(); ++i) {
        matrix.elements[i] += adjoint.elements[i];
        matrix.elements[i] *= scale;
      }
    }
    const Made made =
        Run({Method::kEigh, type, shape, shape.inner(), true}, matrices);
    if (IsForShortSides() && shape.inner() > 32) {
      EXPECT_EQ(ReasonOf(made.status), "MATRIX_TOO_LARGE");
      return;
    }
    ASSERT_EQ(made.status, absl::OkStatus());
    EXPECT_EQ(made.kept, -1);  // not told
    const long double bound = Bound<T>(shape);
    for (size_t b = 0; b < matrices.size(); ++b) {
      const Matrix& v = made.left[b];
      EXPECT_TRUE(std::ranges::is_sorted(made.values[b]));
      EXPECT_LE(Deviation(v), bound);
      const Matrix product =
          Product(Product(v, Diagonal(made.values[b])), Adjoint(v));
      EXPECT_LE(Difference(made.a[b], product).norm(),
                bound * made.a[b].norm());
    }
  }

  /// The bound is that of theorem 10.3 of the same book, for each element, with
  /// 4 for what a product of complex numbers rounds.
  void CheckCholesky(Shape shape) const {
    shape.columns = shape.rows;
    const int64_t n = shape.inner();
    std::vector<Matrix> matrices = RandomMatrices(shape);
    for (Matrix& matrix : matrices) {
      matrix = Product(matrix, Adjoint(matrix));
      for (int64_t i = 0; i < n; ++i) matrix(i, i) += 1;
    }
    const Made made = Run({Method::kCholesky, type, shape, n, false}, matrices);
    ASSERT_EQ(made.status, absl::OkStatus());
    const long double u = std::numeric_limits<RealOf<T>>::epsilon() / 2;
    for (size_t b = 0; b < matrices.size(); ++b) {
      const Matrix& l = made.left[b];
      const Matrix product = Product(l, Adjoint(l));
      for (int64_t i = 0; i < n; ++i) {
        EXPECT_GT(l(i, i).real(), 0);
        EXPECT_EQ(l(i, i).imag(), 0);
        for (int64_t j = 0; j < n; ++j) {
          if (j > i) {
            EXPECT_EQ(l(i, j), Wide(0));
            continue;
          }
          long double sizes = 0;
          for (int64_t k = 0; k <= j; ++k) {
            sizes += std::abs(l(i, k)) * std::abs(l(j, k));
          }
          EXPECT_LE(std::abs(product(i, j) - made.a[b](i, j)),
                    4 * static_cast<long double>(n + 2) * u * sizes);
        }
      }
    }
  }

  /// Whatever the method; random matrices.
  void Check(Method method, const Shape& shape) const {
    SCOPED_TRACE(absl::StrCat(NameOf(type), ", ", shape.row_count(), " x ",
                              shape.column_count()));
    switch (method) {
      case Method::kSvd: return CheckSvd(shape, RandomMatrices(shape));
      case Method::kEigh: return CheckEigh(shape);
      case Method::kCholesky: return CheckCholesky(shape);
      default: return CheckLq(shape);
    }
  }
};

/// Calls `check` with Decompositions of each element type.
template <typename Check>
void ForEachType(Backend& backend, const FactorizationKernel& kernel,
                 std::mt19937& rng, const Check& check) {
  check(Decompositions<float>{backend, kernel, ElementType::kFloat32, rng});
  check(Decompositions<double>{backend, kernel, ElementType::kFloat64, rng});
  check(Decompositions<std::complex<float>>{backend, kernel,
                                            ElementType::kComplex64, rng});
  check(Decompositions<std::complex<double>>{backend, kernel,
                                             ElementType::kComplex128, rng});
}

constexpr Method kDecompositions[] = {Method::kSvd, Method::kEigh,
                                      Method::kCholesky};

std::vector<int64_t> RandomExtents(size_t most_modes, int64_t most,
                                   std::mt19937& rng) {
  std::vector<int64_t> chosen(rng() % (most_modes + 1));
  for (int64_t& extent : chosen) {
    extent = 1 + static_cast<int64_t>(rng() % most);
  }
  return chosen;
}

Shape RandomShape(std::mt19937& rng) {
  return {RandomExtents(2, 3, rng), RandomExtents(2, 5, rng),
          RandomExtents(3, 4, rng)};
}

TEST_P(DecompositionConformance, DecomposesRandomMatrices) {
  for (const Method method : kDecompositions) {
    ForEachKernel(method, [&](const FactorizationKernel& kernel) {
      for (uint32_t seed = 0; seed < 40; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 rng(seed);
        const Shape shape = RandomShape(rng);
        ForEachType(*backend_, kernel, rng,
                    [&](const auto& each) { each.Check(method, shape); });
      }
    });
  }
}

TEST_P(DecompositionConformance, DecomposesLargerMatrices) {
  for (const Method method : kDecompositions) {
    ForEachKernel(method, [&](const FactorizationKernel& kernel) {
      std::mt19937 rng(7);
      ForEachType(*backend_, kernel, rng, [&](const auto& each) {
        each.Check(method, {{}, {47}, {31}});
        each.Check(method, {{3}, {30}, {17}});
        each.Check(method, {{2}, {5, 4}, {40}});
      });
    });
  }
}

TEST_P(DecompositionConformance, LqIsLowerTriangularTimesOrthonormalRows) {
  ForEachKernel(Method::kQr, [&](const FactorizationKernel& kernel) {
    for (uint32_t seed = 0; seed < 30; ++seed) {
      SCOPED_TRACE(seed);
      std::mt19937 rng(seed);
      const Shape shape = RandomShape(rng);
      ForEachType(*backend_, kernel, rng,
                  [&](const auto& each) { each.Check(Method::kLq, shape); });
    }
  });
}

TEST_P(DecompositionConformance, RankDeficientMatricesHaveOrthonormalFactors) {
  ForEachKernel(Method::kSvd, [&](const FactorizationKernel& kernel) {
    std::mt19937 rng(11);
    ForEachType(*backend_, kernel, rng, [&](const auto& each) {
      for (const Shape& shape : {Shape{{}, {9}, {6}}, Shape{{}, {4}, {7}}}) {
        Matrix same =
            RandomMatrix(shape.row_count(), shape.column_count(), false, rng);
        for (int64_t i = 0; i < same.rows; ++i) {
          for (int64_t j = 1; j < same.columns; ++j) same(i, j) = same(i, 0);
        }
        each.CheckSvd(shape, {same});
        each.CheckSvd(shape, {Matrix(same.rows, same.columns)});  // zeros
      }
    });
  });
}

TEST_P(DecompositionConformance, HugeAndTinyNumbersKeepTheirAccuracy) {
  std::mt19937 rng(5);
  const auto for_each_scale = [&](const FactorizationKernel& kernel,
                                  const auto& check) {
    ForEachType(*backend_, kernel, rng,
                [&]<typename T>(const Decompositions<T>& each) {
                  constexpr bool kIsSingle = sizeof(RealOf<T>) == sizeof(float);
                  for (const int sign : {-1, 1}) {
                    check(each, std::pow(10.0L, sign * (kIsSingle ? 30 : 200)));
                  }
                });
  };
  ForEachKernel(Method::kSvd, [&](const FactorizationKernel& kernel) {
    for_each_scale(kernel, [&]<typename T>(const Decompositions<T>& each,
                                           long double scale) {
      Matrix matrix = RandomMatrix(6, 4, kHasImaginaryPart<T>, rng);
      const Matrix usual = Adjoint(matrix);
      for (Wide& element : matrix.elements) element *= scale;
      each.CheckSvd({{}, {6}, {4}}, {matrix});
      each.CheckSvd({{2}, {4}, {6}}, {Adjoint(matrix), usual});
    });
  });
  ForEachKernel(Method::kEigh, [&](const FactorizationKernel& kernel) {
    for_each_scale(kernel, [&](const auto& each, long double scale) {
      each.CheckEigh({{2}, {5}, {}}, scale);
    });
  });
}

/// A matrix with singular values 1, 1/2, 1/4, ...
Matrix Halving(int64_t m, int64_t n, bool is_complex, std::mt19937& rng) {
  const int64_t k = std::min(m, n);
  std::vector<long double> s;
  for (int64_t i = 0; i < k; ++i) s.push_back(std::ldexp(1.0L, -int(i)));
  return Product(Product(RandomOrthonormal(m, k, is_complex, rng), Diagonal(s)),
                 Adjoint(RandomOrthonormal(n, k, is_complex, rng)));
}

struct Cut {
  Truncation truncation;
  int64_t rank;  // of the results
  int64_t kept;  // of values 1, 1/2, ... 1/32
};

TEST_P(DecompositionConformance, TruncationsKeepWhatTheySay) {
  // Squares from the end: 4^-5 = 0.00098, then 0.0049, 0.0205, 0.083 ...
  const std::vector<Cut> cuts = {
      {{}, 6, 6},
      {{}, 3, 3},
      {{.cutoff = 0.2}, 6, 3},
      {{.cutoff = 0.2}, 2, 2},
      {{.cutoff = 5}, 6, 1},
      {{.relative_cutoff = 0.1}, 6, 4},
      {{.discarded_squares = 0.001}, 6, 5},
      {{.discarded_squares = 0.02}, 6, 4},
      {{.relative_discarded_squares = 0.001}, 6, 5},
      {{.relative_discarded_squares = 0.0155}, 6, 3},
      {{.cutoff = 0.2, .relative_discarded_squares = 0.001}, 6, 3},
      {{.discarded_squares = 100}, 6, 1}};
  ForEachKernel(Method::kSvd, [&](const FactorizationKernel& kernel) {
    std::mt19937 rng(3);
    const Shape shape{{2}, {9}, {2, 3}};
    ForEachType(
        *backend_, kernel, rng, [&]<typename T>(const Decompositions<T>& each) {
          const long double bound = Bound<T>(shape);
          for (const Cut& cut : cuts) {
            SCOPED_TRACE(absl::StrCat(cut.rank, " ", cut.kept));
            // One that keeps all, so that the other is filled up with zeros.
            const std::vector<Matrix> matrices = {
                Halving(9, 6, kHasImaginaryPart<T>, rng),
                Halving(9, 6, kHasImaginaryPart<T>, rng)};
            const Made made = each.Run({Method::kSvd, each.type, shape,
                                        cut.rank, true, cut.truncation},
                                       matrices);
            ASSERT_EQ(made.status, absl::OkStatus());
            EXPECT_EQ(made.kept, cut.kept);
            for (size_t b = 0; b < matrices.size(); ++b) {
              long double rest = 0;
              for (int64_t k = 0; k < 6; ++k) {
                const long double value = std::ldexp(1.0L, -int(k));
                if (k >= cut.kept) rest += value * value;
                if (k >= cut.rank) continue;
                const long double got = made.values[b][static_cast<size_t>(k)];
                EXPECT_NEAR(got, k < cut.kept ? value : 0, 2 * bound);
                if (k < cut.kept) continue;
                for (int64_t i = 0; i < 9; ++i) {
                  EXPECT_EQ(made.left[b](i, k), Wide(0));
                }
                for (int64_t j = 0; j < 6; ++j) {
                  EXPECT_EQ(made.right[b](k, j), Wide(0));
                }
              }
              EXPECT_LE(Deviation(FirstColumns(made.left[b], cut.kept)), bound);
              const Matrix product =
                  Product(Product(made.left[b], Diagonal(made.values[b])),
                          made.right[b]);
              EXPECT_NEAR(Difference(made.a[b], product).norm(),
                          std::sqrt(rest), 2 * bound);
            }
          }
        });
  });
}

TEST_P(DecompositionConformance, FactorsAbsorbValuesAndKeepTheNorm) {
  using Absorb = Truncation::Absorb;
  ForEachKernel(Method::kSvd, [&](const FactorizationKernel& kernel) {
    std::mt19937 rng(4);
    const Shape shape{{}, {6}, {8}};
    ForEachType(
        *backend_, kernel, rng, [&]<typename T>(const Decompositions<T>& each) {
          const long double bound = 2 * Bound<T>(shape);
          const Matrix matrix = Halving(6, 8, kHasImaginaryPart<T>, rng);
          for (const Absorb absorb :
               {Absorb::kLeft, Absorb::kRight, Absorb::kBoth}) {
            for (const bool renormalizes : {false, true}) {
              const Made made =
                  each.Run({Method::kSvd,
                            each.type,
                            shape,
                            2,
                            false,
                            {.absorb = absorb, .renormalizes = renormalizes}},
                           {matrix});
              ASSERT_EQ(made.status, absl::OkStatus());
              const Matrix& l = made.left[0];
              const Matrix& r = made.right[0];
              const Matrix product = Product(l, r);
              // 1 + 1/4 of the squares are kept, of 1 + 1/4 + ... + 1/1024.
              const long double all = (1 - std::pow(4.0L, -6)) / 0.75L;
              EXPECT_NEAR(product.norm(), std::sqrt(renormalizes ? all : 1.25L),
                          bound);
              if (absorb == Absorb::kRight) {
                EXPECT_LE(Deviation(l), bound);
              }
              if (absorb == Absorb::kLeft) {
                EXPECT_LE(Deviation(Adjoint(r)), bound);
              }
              if (absorb == Absorb::kBoth) {
                EXPECT_NEAR(l.norm(), r.norm(), bound);
              }
            }
          }
        });
  });
}

TEST_P(DecompositionConformance, MatricesThatCannotBeDecomposedAreRefused) {
  std::mt19937 rng(6);
  // Wide and tall ones; those of EIGH and CHOLESKY are square.
  for (const Method method : kDecompositions) {
    ForEachKernel(method, [&](const FactorizationKernel& kernel) {
      const Decompositions<double> each{*backend_, kernel,
                                        ElementType::kFloat64, rng};
      for (const int64_t columns : {2, 3, 4}) {
        if (method != Method::kSvd && columns != 3) continue;
        Matrix matrix = RandomMatrix(3, columns, false, rng);
        matrix(2, 1) = std::numeric_limits<double>::quiet_NaN();
        const Made made = each.Run({method,
                                    each.type,
                                    {{}, {3}, {columns}},
                                    std::min<int64_t>(3, columns),
                                    method != Method::kCholesky},
                                   {matrix});
        EXPECT_EQ(ReasonOf(made.status), "MATRIX_NOT_FINITE");
        EXPECT_THAT(std::string(made.status.message()),
                    ::testing::HasSubstr(absl::StrCat(
                        "a matrix of 3 x ", columns,
                        ", has an element in column 1 that is NaN")));
      }
    });
  }
  ForEachKernel(Method::kCholesky, [&](const FactorizationKernel& kernel) {
    const Decompositions<double> each{*backend_, kernel, ElementType::kFloat64,
                                      rng};
    Matrix positive(3, 3), negative(3, 3);
    for (int64_t i = 0; i < 3; ++i) {
      positive(i, i) = 1;
      negative(i, i) = i == 1 ? -1 : 1;
    }
    for (const bool is_batch : {false, true}) {
      Asked asked{Method::kCholesky, each.type, {{}, {3}, {3}}, 3, false};
      std::vector<Matrix> matrices = {negative};
      if (is_batch) {
        asked.shape.batch = {2};
        matrices = {positive, negative};
      }
      const Made made = each.Run(asked, matrices);
      EXPECT_EQ(ReasonOf(made.status), "MATRIX_NOT_POSITIVE_DEFINITE");
      EXPECT_EQ(
          made.status.message(),
          absl::StrCat("a, a matrix of 3 x 3",
                       is_batch ? ", number 1 of 2 in memory's order" : "",
                       ", is not positive definite: its leading 2 x 2 "
                       "part is not"));
    }
    // Of which L overflows, and is no number then.
    Matrix overflows(130, 130);
    for (int64_t i = 0; i < 130; ++i) overflows(i, i) = i == 0 ? 1e-300L : 1;
    overflows(100, 0) = 1e300L;
    const Made made =
        each.Run({Method::kCholesky, each.type, {{}, {130}, {130}}, 130, false},
                 {overflows});
    EXPECT_EQ(ReasonOf(made.status), "MATRIX_NOT_POSITIVE_DEFINITE");
  });
}

}  // namespace
}  // namespace tensord::core
