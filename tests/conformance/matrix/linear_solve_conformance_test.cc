// What every kernel that solves equations must do: what it finds satisfies
// equations that differ from those given by what elimination rounds. Sums run
// in long double, by the labels of modes.
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
#include "core/ops/linear_solve.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/matrix/decomposition_runner.h"
#include "tests/conformance/matrix/matrix_conformance.h"
#include "tests/conformance/matrix/solve_runner.h"

namespace tensord::core {
namespace {

using ::testing::HasSubstr;

/// The norm of |L| |U|, of the factors that elimination ends with.
long double Growth(const AskedSolve& asked, Matrix a) {
  const bool pivots = asked.structure == Structure::kGeneral ||
                      asked.structure == Structure::kHermitian;
  const int64_t n = a.rows;
  for (int64_t k = 0; k < n; ++k) {
    int64_t largest = k;
    for (int64_t i = k + 1; i < n && pivots; ++i) {
      if (std::abs(a(i, k)) > std::abs(a(largest, k))) largest = i;
    }
    for (int64_t j = 0; j < n; ++j) std::swap(a(k, j), a(largest, j));
    for (int64_t i = k + 1; i < n; ++i) {
      a(i, k) /= a(k, k);
      for (int64_t j = k + 1; j < n; ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  Matrix lower(n, n), upper(n, n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const long double size = std::abs(a(i, j));
      if (i > j) lower(i, j) = size;
      if (i == j) lower(i, j) = 1;
      if (i <= j) upper(i, j) = size;
    }
  }
  return Product(lower, upper).norm();
}

Matrix RandomOf(const AskedSolve& asked, bool is_complex, std::mt19937& rng) {
  const int64_t n = asked.extent();
  Matrix a = RandomMatrix(n, n, is_complex, rng);
  if (asked.structure == Structure::kPositiveDefinite) {
    a = Product(a, Adjoint(a));
    for (int64_t i = 0; i < n; ++i) a(i, i) += 1;
  }
  // Triangles of random numbers are far too near to singular ones.
  for (int64_t i = 0; i < n && IsTriangular(asked.structure); ++i) {
    a(i, i) += 2;
    for (int64_t j = 0; j < n; ++j) {
      if (i != j) a(i, j) /= static_cast<long double>(n);
    }
  }
  return a;
}

/// Higham, Accuracy and Stability of Numerical Algorithms, theorem 9.4: x
/// satisfies equations whose matrix differs by at most gamma(3 n) |L| |U|;
/// theorem 10.4 says so of positive definite ones, 8.5 of triangles, where |L|
/// |U| is |A|. Complex arithmetic rounds at most four times as much (section
/// 3.6). Storing x rounds it once more.
template <typename T>
void CheckSolve(Backend& backend, const LinearSolveKernel& kernel,
                ElementType type, const AskedSolve& asked, std::mt19937& rng) {
  const int64_t count = Shape::Product(asked.shape.batch);
  const int64_t n = asked.extent(), m = asked.side_count();
  std::vector<Matrix> a, b, d;
  for (int64_t x = 0; x < count; ++x) {
    a.push_back(RandomOf(asked, kHasImaginaryPart<T>, rng));
    b.push_back(RandomMatrix(n, m, kHasImaginaryPart<T>, rng));
    for (int64_t i = 0; i < n && !asked.has_b; ++i) {
      for (int64_t j = 0; j < m; ++j) b.back()(i, j) = i == j ? 1 : 0;
    }
  }
  const absl::Status status =
      SolveRunner<T>(asked, type, rng).Run(backend, kernel, a, b, d);
  if (count == 1 && kernel.name() == "cuda.solve.batched") {
    EXPECT_EQ(ReasonOf(status), "NO_BATCH");
    return;
  }
  ASSERT_EQ(status, absl::OkStatus());
  const long double u = std::numeric_limits<RealOf<T>>::epsilon() / 2;
  for (size_t x = 0; x < a.size(); ++x) {
    const Matrix meant = Meant(asked, a[x]);
    const long double bound = (kHasImaginaryPart<T> ? 4 : 1) * 3.1L *
                              static_cast<long double>(n + 1) * u *
                              (Growth(asked, meant) + meant.norm());
    const Matrix rest = Difference(Product(meant, d[x]), b[x]);
    for (int64_t k = 0; k < m; ++k) {
      long double squares = 0, of_d = 0;
      for (int64_t i = 0; i < n; ++i) {
        squares += std::norm(rest(i, k));
        of_d += std::norm(d[x](i, k));
      }
      EXPECT_LE(std::sqrt(squares), bound * std::sqrt(of_d))
          << "matrix " << x << ", side " << k;
    }
  }
}

/// Of all structures, with sides and as an inverse.
void CheckAll(Backend& backend, const LinearSolveKernel& kernel,
              const Shape& shape, const std::vector<int64_t>& sides,
              std::mt19937& rng) {
  ForEachSolvedType([&]<typename T>(ElementType type) {
    for (int i = 0; i < kMatrixStructureCount; ++i) {
      const auto structure = static_cast<Structure>(i);
      SCOPED_TRACE(absl::StrCat(NameOf(structure), " ", NameOf(type)));
      CheckSolve<T>(backend, kernel, type, {structure, shape, sides}, rng);
      if (!shape.rows.empty()) {
        CheckSolve<T>(backend, kernel, type, {structure, shape, {}, false},
                      rng);
      }
      if (IsTriangular(structure)) {
        CheckSolve<T>(backend, kernel, type,
                      {structure, shape, sides, true, true}, rng);
      }
    }
  });
}

TEST_P(LinearSolveConformance, SolvesRandomEquations) {
  ForEachSolver([&](const LinearSolveKernel& kernel) {
    for (uint32_t seed = 0; seed < 15; ++seed) {
      SCOPED_TRACE(seed);
      std::mt19937 rng(seed);
      const std::vector<int64_t> rows = RandomSides(2, 5, rng);
      std::vector<int64_t> columns = rows;
      std::ranges::shuffle(columns, rng);
      CheckAll(*backend_, kernel, {RandomSides(2, 3, rng), rows, columns},
               RandomSides(2, 4, rng), rng);
    }
  });
}

TEST_P(LinearSolveConformance, RowsAndColumnsNeedNotHaveAsManyModes) {
  ForEachSolver([&](const LinearSolveKernel& kernel) {
    std::mt19937 rng(3);
    ForEachSolvedType([&]<typename T>(ElementType type) {
      CheckSolve<T>(*backend_, kernel, type,
                    {Structure::kGeneral, {{2}, {2, 3, 2}, {4, 3}}, {5}}, rng);
    });
  });
}

TEST_P(LinearSolveConformance, SolvesByPanelsAndSlabs) {
  ForEachSolver([&](const LinearSolveKernel& kernel) {
    std::mt19937 rng(7);
    CheckAll(*backend_, kernel, {{}, {5, 13}, {13, 5}}, {5}, rng);
  });
  std::mt19937 rng(8);
  const LinearSolveKernel& kernel = LargeSolver();
  for (int i = 0; i < kMatrixStructureCount; ++i) {
    const auto structure = static_cast<Structure>(i);
    CheckSolve<float>(*backend_, kernel, ElementType::kFloat32,
                      {structure, {{}, {64}, {64}}, {1}}, rng);
    CheckSolve<double>(*backend_, kernel, ElementType::kFloat64,
                       {structure, {{}, {143}, {143}}, {140}}, rng);
  }
}

TEST_P(LinearSolveConformance, OperandsAreConjugated) {
  ForEachSolver([&](const LinearSolveKernel& kernel) {
    std::mt19937 rng(5);
    ForEachSolvedType([&]<typename T>(ElementType type) {
      for (int i = 0; i < kMatrixStructureCount; ++i) {
        const auto structure = static_cast<Structure>(i);
        SCOPED_TRACE(absl::StrCat(NameOf(structure), " ", NameOf(type)));
        AskedSolve asked{structure, {{2}, {6}, {6}}, {3}};
        asked.conjugates = true;
        CheckSolve<T>(*backend_, kernel, type, asked, rng);
        asked.has_b = false;
        CheckSolve<T>(*backend_, kernel, type, asked, rng);
      }
    });
  });
}

/// Of large matrices, which all threads share; larger than the sum of a column
/// is each diagonal element, so that L and U grow to twice a at most (Higham,
/// theorem 9.9).
TEST_P(LinearSolveConformance, LargeMatricesAreSolvedByAllThreads) {
  const LinearSolveKernel& kernel = LargeSolver();
  const int64_t n = GetParam().large_extent, m = 3;
  std::mt19937 rng(9);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const auto structure :
       {Structure::kGeneral, Structure::kPositiveDefinite}) {
    SCOPED_TRACE(NameOf(structure));
    const SharedArray<double> a(*backend_, n * n, 0.0),
        b(*backend_, n * m, 0.0), d(*backend_, n * m, 0.0);
    for (double& element : a) element = uniform(rng);
    for (double& element : b) element = uniform(rng);
    for (int64_t i = 0; i < n; ++i) {
      a[i * n + i] = 2.0 * static_cast<double>(n);
      for (int64_t j = 0; j < i; ++j) {
        if (structure != Structure::kGeneral) a[j * n + i] = a[i * n + j];
      }
    }
    const auto matrix = [](Modes modes, ModeVector extents) {
      return OperandDesc{
          .element_type = ElementType::kFloat64,
          .layout = PackedLayout(extents, Order::kLastModeFastest),
          .modes = std::move(modes)};
    };
    const LinearSolveDesc desc{.structure = structure,
                               .a = matrix({'i', 'j'}, {n, n}),
                               .b = matrix({'i', 'k'}, {n, m}),
                               .d = matrix({'j', 'k'}, {n, m})};
    ASSERT_EQ(Validate(desc), absl::OkStatus());
    ASSERT_EQ(RunKernel(*backend_, kernel, Canonicalize(desc),
                        {.a = a.data(), .b = b.data(), .d = d.data()}),
              absl::OkStatus());
    // |L| |U| has rows of at most 2 n times the largest of a, and d is small.
    const auto rows = static_cast<double>(n);
    const double bound = 3.1 * rows * 1.2e-16 * (2 * rows * 4 * rows);
    double largest = 0;
    for (const double element : d)
      largest = std::max(largest, std::abs(element));
    EXPECT_LE(largest, 2 / rows);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < m; ++k) {
        long double sum = 0;
        for (int64_t j = 0; j < n; ++j) {
          sum += static_cast<long double>(a[i * n + j]) * d[j * m + k];
        }
        ASSERT_NEAR(static_cast<double>(sum), b[i * m + k], bound * largest);
      }
    }
  }
}

TEST_P(LinearSolveConformance, MatricesThatCannotBeSolvedAreRefused) {
  ForEachSolver([&](const LinearSolveKernel& kernel) {
    std::mt19937 rng(6);
    const auto run = [&](AskedSolve asked, Matrix second) {
      asked.shape = {{2}, {3}, {3}};
      asked.sides = {2};
      std::vector<Matrix> a, b, d;
      a.push_back(Diagonal({1, 2, 3}));
      a.push_back(std::move(second));
      b.assign(2, RandomMatrix(3, 2, false, rng));
      return SolveRunner<double>(asked, ElementType::kFloat64, rng)
          .Run(*backend_, kernel, a, b, d);
    };
    const auto is = [](const absl::Status& status, absl::string_view reason,
                       const std::string& part) {
      EXPECT_EQ(ReasonOf(status), reason);
      EXPECT_THAT(std::string(status.message()), HasSubstr(part));
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("a, a matrix of 3 x 3, number 1 of 2"));
    };
    is(run({}, Diagonal({1, 0, 3})), "MATRIX_SINGULAR", "column 1");
    is(run({Structure::kHermitian}, Diagonal({1, 2, 0})), "MATRIX_SINGULAR",
       "column 2");
    for (const auto triangle :
         {Structure::kLowerTriangular, Structure::kUpperTriangular}) {
      is(run({triangle}, Diagonal({0, 2, 3})), "MATRIX_SINGULAR",
         "element 0 of its diagonal");
      AskedSolve unit{triangle};
      unit.has_unit_diagonal = true;
      EXPECT_EQ(run(unit, Diagonal({0, 2, 3})), absl::OkStatus());
    }
    is(run({Structure::kPositiveDefinite}, Diagonal({1, -1, 1})),
       "MATRIX_NOT_POSITIVE_DEFINITE", "leading 2 x 2");
    Matrix not_finite = Diagonal({1, 2, 3});
    not_finite(2, 1) = std::numeric_limits<double>::quiet_NaN();
    is(run({}, not_finite), "MATRIX_NOT_FINITE", "column 1");
    is(run({Structure::kHermitian}, not_finite), "MATRIX_NOT_FINITE",
       "column 1");
    // Of which L overflows, and is no number then.
    Matrix overflows = Diagonal(std::vector<long double>(130, 1));
    overflows(0, 0) = 1e-300L;
    overflows(100, 0) = 1e300L;
    std::vector<Matrix> a(2, overflows), b(2, Matrix(130, 1)), d;
    const AskedSolve wide{
        Structure::kPositiveDefinite, {{2}, {130}, {130}}, {1}};
    EXPECT_EQ(ReasonOf(SolveRunner<double>(wide, ElementType::kFloat64, rng)
                           .Run(*backend_, kernel, a, b, d)),
              "MATRIX_NOT_POSITIVE_DEFINITE");
    // What is not read does not matter.
    EXPECT_EQ(run({Structure::kUpperTriangular}, not_finite), absl::OkStatus());
  });
}

TEST_P(LinearSolveConformance, RightSidesThatAreNotFiniteArePassedOn) {
  ForEachSolver([&](const LinearSolveKernel& kernel) {
    std::mt19937 rng(2);
    const AskedSolve asked{Structure::kGeneral, {{2}, {2}, {2}}, {2}};
    std::vector<Matrix> a(2, Diagonal({1, 2})), b(2, Matrix(2, 2)), d;
    b[0](0, 0) = std::numeric_limits<double>::infinity();
    b[0](1, 1) = 4;
    ASSERT_EQ(SolveRunner<double>(asked, ElementType::kFloat64, rng)
                  .Run(*backend_, kernel, a, b, d),
              absl::OkStatus());
    EXPECT_FALSE(std::isfinite(d[0](0, 0).real()));
    EXPECT_EQ(d[0](0, 1), Wide(0));
    EXPECT_EQ(d[0](1, 1), Wide(2));
  });
}

}  // namespace
}  // namespace tensord::core
