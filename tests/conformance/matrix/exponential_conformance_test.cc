// What every kernel that computes exponentials of matrices must do, against
// sums of powers in long double.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
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
#include "tests/conformance/matrix/solve_runner.h"

namespace tensord::core {
namespace {

using ::testing::HasSubstr;

/// The largest sum of absolute values of a column.
long double ColumnNorm(const Matrix& x) {
  long double largest = 0;
  for (int64_t j = 0; j < x.columns; ++j) {
    long double sum = 0;
    for (int64_t i = 0; i < x.rows; ++i) sum += std::abs(x(i, j));
    largest = std::max(largest, sum);
  }
  return largest;
}

Matrix Scaled(Matrix x, long double factor) {
  for (Wide& element : x.elements) element *= factor;
  return x;
}

/// The series at 2^-s x, of norm 1/16 at most, squared s times: rounds 2^s as
/// much as a number of long double.
Matrix ExponentialOf(const Matrix& x) {
  int squarings = 0;
  while (std::ldexp(ColumnNorm(x), -squarings) > 1 / 16.0L) ++squarings;
  const Matrix small = Scaled(x, std::ldexp(1.0L, -squarings));
  Matrix power =
      Diagonal(std::vector<long double>(static_cast<size_t>(x.rows), 1));
  Matrix sum = power;
  for (int k = 1; k < 18; ++k) {
    power = Scaled(Product(power, small), 1.0L / k);
    for (size_t i = 0; i < sum.elements.size(); ++i) {
      sum.elements[i] += power.elements[i];
    }
  }
  for (int k = 0; k < squarings; ++k) sum = Product(sum, sum);
  return sum;
}

/// One matrix of a batch.
struct Sample {
  Matrix matrix;
  /// The largest norm of exp(t x), 0 <= t <= 1.
  long double growth;
};

template <typename T>
void CheckExponentials(Backend& backend, const LinearSolveKernel& kernel,
                       ElementType type, const AskedSolve& asked,
                       const std::vector<Sample>& samples, std::mt19937& rng) {
  std::vector<Matrix> a, b, d;
  for (const Sample& sample : samples) a.push_back(sample.matrix);
  const absl::Status status =
      SolveRunner<T>(asked, type, rng).Run(backend, kernel, a, b, d);
  if (samples.size() == 1 && kernel.name() == "cuda.solve.batched") {
    EXPECT_EQ(ReasonOf(status), "NO_BATCH");
    return;
  }
  ASSERT_EQ(status, absl::OkStatus());
  const long double u = std::numeric_limits<RealOf<T>>::epsilon() / 2;
  const auto n = static_cast<long double>(asked.extent());
  for (size_t x = 0; x < samples.size(); ++x) {
    const Matrix meant = Meant(asked, a[x]);
    // Higham, Functions of Matrices, theorem 10.16 and (10.36): the approximant
    // rounds some n u of itself, which is multiplied, as is what each product
    // rounds, n u of the norms of its factors, by what is left to be squared:
    // 2^s, of the order of the norm, times powers that exp(t a) bounds.
    const long double bound = (kHasImaginaryPart<T> ? 4 : 1) * 16 * n * u *
                              (1 + ColumnNorm(meant)) * samples[x].growth *
                              samples[x].growth;
    EXPECT_LE(ColumnNorm(Difference(ExponentialOf(meant), d[x])), bound)
        << "matrix " << x << " of norm " << ColumnNorm(meant);
  }
}

AskedSolve Exponential(const Shape& shape,
                       Structure structure = Structure::kGeneral) {
  AskedSolve asked{.structure = structure, .shape = shape};
  asked.has_b = false;
  asked.function = MatrixFunction::kExponential;
  return asked;
}

Sample RandomSample(int64_t n, long double norm, bool is_complex,
                    std::mt19937& rng) {
  const Matrix matrix = RandomMatrix(n, n, is_complex, rng);
  return {Scaled(matrix, norm / ColumnNorm(matrix)), std::exp(norm)};
}

/// Of eigenvalues on the imaginary axis: exp(t x) is unitary.
Sample RandomRotation(int64_t n, long double norm, bool is_complex,
                      std::mt19937& rng) {
  const Matrix matrix = RandomMatrix(n, n, is_complex, rng);
  const Matrix skew = Difference(matrix, Adjoint(matrix));
  const long double own = ColumnNorm(skew);
  return {Scaled(skew, own == 0 ? 0 : norm / own),
          std::sqrt(static_cast<long double>(n))};
}

TEST_P(LinearSolveConformance, ComputesRandomExponentials) {
  ForEachSolver([&](const LinearSolveKernel& kernel) {
    for (uint32_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(seed);
      std::mt19937 rng(seed);
      std::vector<int64_t> rows = RandomSides(2, 4, rng);
      if (rows.empty()) rows = {3};
      const Shape shape{RandomSides(2, 3, rng), rows, rows};
      ForEachSolvedType([&]<typename T>(ElementType type) {
        for (int i = 0; i < kMatrixStructureCount; ++i) {
          const auto structure = static_cast<Structure>(i);
          SCOPED_TRACE(absl::StrCat(NameOf(structure), " ", NameOf(type)));
          AskedSolve asked = Exponential(shape, structure);
          asked.has_unit_diagonal = IsTriangular(structure) && seed % 2 == 0;
          asked.conjugates = seed % 3 == 0;
          std::vector<Sample> samples;
          for (int64_t x = 0; x < Shape::Product(shape.batch); ++x) {
            samples.push_back(
                RandomSample(asked.extent(), 1.5L, kHasImaginaryPart<T>, rng));
            // What stands for what is not read adds to the norm.
            samples.back().growth = std::exp(4.0L);
          }
          CheckExponentials<T>(*backend_, kernel, type, asked, samples, rng);
        }
      });
    }
  });
}

// All degrees, and squared in a batch how often each matrix needs it.
TEST_P(LinearSolveConformance, ExponentialsOfAllSizesAreAsNear) {
  ForEachSolver([&](const LinearSolveKernel& kernel) {
    std::mt19937 rng(11);
    ForEachSolvedType([&]<typename T>(ElementType type) {
      SCOPED_TRACE(NameOf(type));
      const Shape shape{{9}, {5}, {5}};
      std::vector<Sample> all;
      for (const long double norm :
           {0.0L, 1e-9L, 1e-3L, 0.1L, 0.6L, 1.5L, 4.0L, 30.0L, 300.0L}) {
        all.push_back(RandomRotation(5, norm, kHasImaginaryPart<T>, rng));
      }
      CheckExponentials<T>(*backend_, kernel, type, Exponential(shape), all,
                           rng);
      // Each by itself has the degree that it needs, no higher one.
      for (const Sample& sample : all) {
        CheckExponentials<T>(*backend_, kernel, type,
                             Exponential({{2}, {5}, {5}}), {sample, sample},
                             rng);
      }
    });
  });
}

// Where powers are far smaller than absolute values let fear, squaring too
// often would cost all digits.
TEST_P(LinearSolveConformance, ExponentialsOfMatricesFarFromNormalAreNear) {
  ForEachSolver([&](const LinearSolveKernel& kernel) {
    std::mt19937 rng(12);
    const auto exponential = [&](std::vector<Matrix> a) {
      std::vector<Matrix> b, d;
      EXPECT_EQ(SolveRunner<double>(Exponential({{std::ssize(a)}, {2}, {2}}),
                                    ElementType::kFloat64, rng)
                    .Run(*backend_, kernel, a, b, d),
                absl::OkStatus());
      return d;
    };
    Matrix sheared = Diagonal({1, -1}), nilpotent(2, 2), huge(2, 2),
           far = Diagonal({-1e4L, 1}), largest(2, 2);
    sheared(0, 1) = 1e6L;
    nilpotent(0, 1) = 1e150L;
    huge(0, 1) = 1e300L;
    largest(0, 1) = largest(1, 1) = -std::numeric_limits<double>::max();
    const std::vector<Matrix> d =
        exponential({sheared, nilpotent, huge, far, largest});
    ASSERT_EQ(d.size(), 5u);
    const auto expect_near = [](Wide is, long double wanted,
                                long double tolerance = 1e-14L) {
      EXPECT_LE(std::abs(is - wanted), tolerance * std::abs(wanted))
          << is.real() << " for " << wanted;
    };
    expect_near(d[0](0, 0), std::exp(1.0L));
    expect_near(d[0](1, 1), std::exp(-1.0L));
    expect_near(d[0](0, 1), 1e6L * std::sinh(1.0L));
    EXPECT_EQ(d[0](1, 0), Wide(0));
    expect_near(d[1](0, 1), 1e150L);
    expect_near(d[2](0, 1), 1e300L);
    for (const size_t x : {1, 2}) {
      EXPECT_EQ(d[x](0, 0), Wide(1));
      EXPECT_EQ(d[x](1, 1), Wide(1));
    }
    EXPECT_LE(std::abs(d[3](0, 0)), 1e-300L);
    // Of the norm 1e4, whose roundings it has.
    expect_near(d[3](1, 1), std::exp(1.0L), 1e-11L);
    EXPECT_EQ(d[4](0, 0), Wide(1));
    expect_near(d[4](0, 1), -1);  // -m exp(-m t) integrates to exp(-m) - 1
    EXPECT_EQ(d[4](1, 1), Wide(0));
  });
}

/// D x D^-1 with the powers of two that `powers` tell.
Matrix Similar(Matrix x, const std::vector<int>& powers) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.columns; ++j) {
      x(i, j) *= std::ldexp(1.0L, powers[static_cast<size_t>(i)] -
                                      powers[static_cast<size_t>(j)]);
    }
  }
  return x;
}

// Rows and columns in other units: what is computed is as near, unit by unit.
TEST_P(LinearSolveConformance, ExponentialsDoNotDependOnUnits) {
  ForEachSolver([&](const LinearSolveKernel& kernel) {
    std::mt19937 rng(15);
    ForEachSolvedType([&]<typename T>(ElementType type) {
      const bool is_single = RealPartOf(type) == ElementType::kFloat32;
      const int most = is_single ? 60 : 500;
      for (const int spread : {20, most}) {
        SCOPED_TRACE(absl::StrCat(NameOf(type), ", 2^", spread));
        constexpr int64_t kExtent = 6;
        std::vector<int> powers;
        for (int64_t k = 0; k < kExtent; ++k) {
          powers.push_back(static_cast<int>(rng() % spread));
        }
        powers[0] = 0;
        powers[1] = spread;
        const Sample one =
            RandomSample(kExtent, 1.5L, kHasImaginaryPart<T>, rng);
        Matrix rounded = one.matrix;
        for (Wide& x : rounded.elements) x = Wide(Rounded<T>(x));
        // Beside one that is not to be balanced.
        std::vector<Matrix> a = {Similar(rounded, powers), rounded}, b, d;
        ASSERT_EQ(
            SolveRunner<T>(Exponential({{2}, {kExtent}, {kExtent}}), type, rng)
                .Run(*backend_, kernel, a, b, d),
            absl::OkStatus());
        for (int& power : powers) power = -power;
        const Matrix exact = ExponentialOf(rounded);
        const long double u = std::numeric_limits<RealOf<T>>::epsilon() / 2;
        const long double bound = (kHasImaginaryPart<T> ? 4 : 1) * 16 *
                                  kExtent * u * (1 + 1.5L) * std::exp(3.0L);
        EXPECT_LE(ColumnNorm(Difference(exact, Similar(d[0], powers))), bound);
        EXPECT_LE(ColumnNorm(Difference(exact, d[1])), bound);
      }
    });
  });
}

// A triangle's zeros stay, and its diagonal is that of its elements, however
// large the others are.
TEST_P(LinearSolveConformance, ExponentialsOfTrianglesAreTriangles) {
  ForEachSolver([&](const LinearSolveKernel& kernel) {
    std::mt19937 rng(16);
    for (const auto structure :
         {Structure::kLowerTriangular, Structure::kUpperTriangular}) {
      SCOPED_TRACE(NameOf(structure));
      constexpr int64_t kExtent = 12;
      const AskedSolve asked =
          Exponential({{2}, {kExtent}, {kExtent}}, structure);
      std::vector<Matrix> a, b, d;
      for (int x = 0; x < 2; ++x) {
        Matrix& own =
            a.emplace_back(RandomMatrix(kExtent, kExtent, false, rng));
        for (int64_t i = 0; i < kExtent; ++i) {
          for (int64_t j = 0; j < kExtent; ++j) {
            if (i != j) own(i, j) *= 1e4L;
          }
        }
      }
      ASSERT_EQ(SolveRunner<double>(asked, ElementType::kFloat64, rng)
                    .Run(*backend_, kernel, a, b, d),
                absl::OkStatus());
      for (size_t x = 0; x < 2; ++x) {
        for (int64_t i = 0; i < kExtent; ++i) {
          for (int64_t j = 0; j < kExtent; ++j) {
            if (i == j) {
              const long double wanted = std::exp(a[x](i, i).real());
              EXPECT_NEAR(static_cast<double>(d[x](i, i).real() / wanted), 1,
                          1e-13);
            } else if (!IsRead(asked, i, j)) {
              EXPECT_EQ(d[x](i, j), Wide(0));
            }
          }
        }
      }
    }
  });
}

TEST_P(LinearSolveConformance, LargeExponentialsAreComputedByAllThreads) {
  std::mt19937 rng(13);
  const LinearSolveKernel& kernel = LargeSolver();
  CheckExponentials<double>(*backend_, kernel, ElementType::kFloat64,
                            Exponential({{}, {150}, {150}}),
                            {RandomRotation(150, 20, false, rng)}, rng);
  CheckExponentials<std::complex<float>>(
      *backend_, kernel, ElementType::kComplex64,
      Exponential({{}, {3, 23}, {3, 23}}), {RandomRotation(69, 7, true, rng)},
      rng);
}

TEST_P(LinearSolveConformance, ExponentialsOfWhatIsNotFiniteAreRefused) {
  ForEachSolver([&](const LinearSolveKernel& kernel) {
    std::mt19937 rng(14);
    std::vector<Matrix> a(3, Diagonal({1, 2, 3})), b, d;
    a[1](2, 1) = std::numeric_limits<double>::infinity();
    const AskedSolve asked = Exponential({{3}, {3}, {3}});
    const absl::Status status =
        SolveRunner<double>(asked, ElementType::kFloat64, rng)
            .Run(*backend_, kernel, a, b, d);
    EXPECT_EQ(ReasonOf(status), "MATRIX_NOT_FINITE");
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("a, a matrix of 3 x 3, number"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("column 1"));
    // What is not read does not matter.
    a[1](2, 1) = 0;
    a[1](0, 1) = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(
        SolveRunner<double>(Exponential({{3}, {3}, {3}}, Structure::kHermitian),
                            ElementType::kFloat64, rng)
            .Run(*backend_, kernel, a, b, d),
        absl::OkStatus());
  });
}

}  // namespace
}  // namespace tensord::core
