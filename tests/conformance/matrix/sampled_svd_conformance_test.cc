// What every kernel must do that decomposes matrices by a random sample, or
// could: what it finds is as near as Halko, Martinsson and Tropp, Finding
// Structure with Randomness (2011), say, with as much to spare as chance may
// take. Sums run in long double.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/matrix/decomposition_runner.h"
#include "tests/conformance/matrix/matrix_conformance.h"

namespace tensord::core {
namespace {

template <typename Check>
void ForEachSampledType(const Check& check) {
  check.template operator()<float>(ElementType::kFloat32);
  check.template operator()<double>(ElementType::kFloat64);
  check.template operator()<std::complex<float>>(ElementType::kComplex64);
  check.template operator()<std::complex<double>>(ElementType::kComplex128);
}

/// Of those singular values, as many as the shorter side has.
Matrix WithValues(int64_t m, int64_t n, const std::vector<long double>& values,
                  bool is_complex, std::mt19937& rng) {
  const auto k = std::ssize(values);
  return Product(
      Product(RandomOrthonormal(m, k, is_complex, rng), Diagonal(values)),
      Adjoint(RandomOrthonormal(n, k, is_complex, rng)));
}

/// Products, reflections and an SVD, each rounding as a decomposition does: see
/// decomposition_conformance_test.cc.
template <typename T>
long double Bound(int64_t m, int64_t n, int64_t k) {
  const long double u = std::numeric_limits<RealOf<T>>::epsilon() / 2;
  return 8 * (8 * static_cast<long double>(std::max(m, n)) * k + 13) *
         std::sqrt(static_cast<long double>(k)) * u;
}

Matrix Approximation(const Made& made, size_t b) {
  return Product(Product(made.left[b], Diagonal(made.values[b])),
                 made.right[b]);
}

TEST_P(SampledSvdConformance, FindsAllOfLowRank) {
  ForEachSampler([&](const FactorizationKernel& kernel) {
    for (const auto& [m, n] :
         {std::pair<int64_t, int64_t>{30, 24}, {24, 30}, {61, 17}}) {
      ForEachSampledType([&]<typename T>(ElementType type) {
        SCOPED_TRACE(absl::StrCat(NameOf(type), " ", m, " x ", n));
        std::mt19937 rng(1);
        const Shape shape{{2}, {m}, {n}};
        Asked asked{Method::kSvd, type, shape, 4, true};
        asked.sampling = Sampling{.oversampling = 3, .power_iterations = 0};
        const std::vector<long double> values = {3, 2, 1, 0.5L};
        const std::vector<Matrix> matrices = {
            WithValues(m, n, values, kHasImaginaryPart<T>, rng),
            WithValues(m, n, {1}, kHasImaginaryPart<T>, rng)};
        const Made made =
            Runner<T>(asked, rng).Run(*backend_, kernel, matrices);
        ASSERT_EQ(made.status, absl::OkStatus());
        EXPECT_EQ(made.kept, 4);
        const long double bound = Bound<T>(m, n, 7);
        for (size_t b = 0; b < 2; ++b) {
          EXPECT_LE(Deviation(made.left[b]), bound);
          EXPECT_LE(Deviation(Adjoint(made.right[b])), bound);
          EXPECT_LE(Difference(made.a[b], Approximation(made, b)).norm(),
                    bound * made.a[b].norm());
          EXPECT_TRUE(std::ranges::is_sorted(made.values[b], std::greater<>()));
        }
        EXPECT_NEAR(static_cast<double>(made.values[0][3]), 0.5,
                    static_cast<double>(4 * bound));
      });
    }
  });
}

// Theorem 10.5 in squares, and 9.3 for what is cut off of what is found.
TEST_P(SampledSvdConformance, MissesNoMoreThanTheorySays) {
  ForEachSampler([&](const FactorizationKernel& kernel) {
    for (const int64_t power_iterations : {0, 1, 3}) {
      ForEachSampledType([&]<typename T>(ElementType type) {
        SCOPED_TRACE(absl::StrCat(NameOf(type), " ", power_iterations));
        std::mt19937 rng(2);
        constexpr int64_t kRows = 60, kColumns = 50, kKept = 6, kMore = 5;
        std::vector<long double> values;
        for (int64_t k = 0; k < kColumns; ++k) {
          values.push_back(std::pow(0.8L, static_cast<long double>(k)));
        }
        long double rest = 0;
        for (int64_t k = kKept; k < kColumns; ++k) {
          const long double value = values[static_cast<size_t>(k)];
          rest += value * value;
        }
        Asked asked{Method::kSvd, type, {{}, {6, 10}, {5, 10}}, kKept, true};
        asked.sampling = Sampling{.oversampling = kMore,
                                  .power_iterations = power_iterations};
        const Made made = Runner<T>(asked, rng)
                              .Run(*backend_, kernel,
                                   {WithValues(kRows, kColumns, values,
                                               kHasImaginaryPart<T>, rng)});
        ASSERT_EQ(made.status, absl::OkStatus());
        const long double factor =
            1 + std::sqrt(1 + static_cast<long double>(kKept) / (kMore - 1));
        EXPECT_LE(Difference(made.a[0], Approximation(made, 0)).norm(),
                  factor * std::sqrt(rest));
        for (size_t k = 0; k < 3; ++k) {
          // No value of a part is above that of the whole.
          EXPECT_LE(made.values[0][k], values[k] * (1 + Bound<T>(60, 50, 11)));
          EXPECT_GE(made.values[0][k],
                    values[k] * (power_iterations == 0 ? 0.7L : 0.97L));
        }
      });
    }
  });
}

// Squares of values that were not found count, too.
TEST_P(SampledSvdConformance, TruncationsKnowWhatIsNotFound) {
  ForEachSampler([&](const FactorizationKernel& kernel) {
    ForEachSampledType([&]<typename T>(ElementType type) {
      SCOPED_TRACE(NameOf(type));
      std::mt19937 rng(3);
      std::vector<long double> values(40, 0.01L);  // 36 squares: 0.0036
      const std::vector<long double> large = {2, 1, 0.5L, 0.25L};
      std::ranges::copy(large, values.begin());
      const Matrix a = WithValues(50, 40, values, kHasImaginaryPart<T>, rng);
      const auto run = [&](const Truncation& truncation) {
        Asked asked{Method::kSvd, type, {{}, {50}, {40}}, 8, true, truncation};
        asked.sampling = Sampling{.oversampling = 4};
        const Made made = Runner<T>(asked, rng).Run(*backend_, kernel, {a});
        EXPECT_EQ(made.status, absl::OkStatus());
        return made;
      };
      EXPECT_EQ(run({.cutoff = 0.1}).kept, 4);
      EXPECT_EQ(run({.relative_cutoff = 0.2}).kept, 3);
      // The rest and 0.0625 are 0.0661.
      EXPECT_EQ(run({.discarded_squares = 0.068}).kept, 3);
      EXPECT_EQ(run({.discarded_squares = 0.064}).kept, 4);
      EXPECT_EQ(run({.discarded_squares = 0.001}).kept, 8);
      // All are 5.3161.
      EXPECT_EQ(run({.relative_discarded_squares = 0.068 / 5.3161}).kept, 3);
      EXPECT_EQ(run({.relative_discarded_squares = 0.064 / 5.3161}).kept, 4);
      const Made made = run({.cutoff = 0.7, .renormalizes = true});
      EXPECT_EQ(made.kept, 2);
      EXPECT_NEAR(static_cast<double>(made.values[0][0]),
                  2 * std::sqrt(5.3161 / 5), 1e-3);
      EXPECT_EQ(made.values[0][2], 0);
    });
  });
}

// What values round is nothing that was not found.
TEST_P(SampledSvdConformance, RoundingIsNotDiscarded) {
  ForEachSampler([&](const FactorizationKernel& kernel) {
    ForEachSampledType([&]<typename T>(ElementType type) {
      SCOPED_TRACE(NameOf(type));
      std::mt19937 rng(8);
      std::vector<long double> values;
      for (int k = 0; k < 30; ++k) values.push_back(1 - 0.02L * k);
      const long double epsilon = std::numeric_limits<RealOf<T>>::epsilon();
      Asked asked{Method::kSvd, type, {{}, {90}, {80}}, 40, true};
      asked.truncation.relative_discarded_squares =
          static_cast<double>(4 * epsilon);
      asked.sampling = Sampling{.oversampling = 5};
      const Made made =
          Runner<T>(asked, rng)
              .Run(*backend_, kernel,
                   {WithValues(90, 80, values, kHasImaginaryPart<T>, rng)});
      ASSERT_EQ(made.status, absl::OkStatus());
      EXPECT_EQ(made.kept, 30);
    });
  });
}

TEST_P(SampledSvdConformance, HugeAndTinyNumbersAndZerosAreDecomposed) {
  ForEachSampler([&](const FactorizationKernel& kernel) {
    ForEachSampledType([&]<typename T>(ElementType type) {
      SCOPED_TRACE(NameOf(type));
      std::mt19937 rng(4);
      const Matrix one =
          WithValues(20, 30, {1, 0.5L}, kHasImaginaryPart<T>, rng);
      const int power = RealPartOf(type) == ElementType::kFloat32 ? 120 : 1000;
      std::vector<Matrix> matrices(4, one);
      for (Wide& x : matrices[1].elements) x *= std::ldexp(1.0L, power);
      for (Wide& x : matrices[2].elements) x *= std::ldexp(1.0L, -power);
      for (Wide& x : matrices[3].elements) x = 0;
      Asked asked{Method::kSvd, type, {{4}, {20}, {30}}, 2, true};
      asked.sampling = Sampling{.oversampling = 3};
      const Made made = Runner<T>(asked, rng).Run(*backend_, kernel, matrices);
      ASSERT_EQ(made.status, absl::OkStatus());
      const auto tolerance = static_cast<double>(4 * Bound<T>(20, 30, 5));
      for (const int b : {0, 1, 2}) {
        const int own = b == 0 ? 0 : b == 1 ? power : -power;
        for (const int k : {0, 1}) {
          // Tiny ones have fewer digits.
          const bool is_subnormal = b == 2;
          EXPECT_NEAR(static_cast<double>(std::ldexp(made.values[b][k], -own)),
                      k == 0 ? 1 : 0.5, is_subnormal ? 1e-2 : tolerance);
        }
        EXPECT_LE(Deviation(made.left[b]), tolerance);
      }
      EXPECT_EQ(made.values[3], std::vector<long double>({0, 0}));
      EXPECT_LE(Deviation(made.left[3]), tolerance);
      EXPECT_LE(Deviation(Adjoint(made.right[3])), tolerance);
    });
  });
}

TEST_P(SampledSvdConformance, EqualSeedsAreEqualBits) {
  ForEachSampler([&](const FactorizationKernel& kernel) {
    std::mt19937 rng(5);
    std::vector<long double> values;
    for (int k = 0; k < 30; ++k) values.push_back(std::pow(0.9L, k));
    const Matrix a = WithValues(40, 30, values, false, rng);
    const auto run = [&](int64_t seed) {
      Asked asked{
          Method::kSvd, ElementType::kFloat64, {{}, {40}, {30}}, 5, true};
      asked.sampling = Sampling{.oversampling = 5, .power_iterations = 0};
      asked.truncation.seed = seed;
      std::mt19937 same(6);
      const Made made = Runner<double>(asked, same).Run(*backend_, kernel, {a});
      EXPECT_EQ(made.status, absl::OkStatus());
      return made.left[0].elements;
    };
    const bool is_sampled = kernel.name() == "cpu.factorize.sampled_svd";
    EXPECT_EQ(run(3), run(3));
    EXPECT_EQ(run(3) == run(4), !is_sampled);
  });
}

TEST_P(SampledSvdConformance, WhatIsNotFiniteIsRefused) {
  ForEachSampler([&](const FactorizationKernel& kernel) {
    std::mt19937 rng(7);
    Matrix a = RandomMatrix(20, 20, false, rng);
    a(3, 2) = std::numeric_limits<double>::quiet_NaN();
    Asked asked{Method::kSvd, ElementType::kFloat64, {{}, {20}, {20}}, 3, true};
    asked.sampling = Sampling{.oversampling = 2};
    EXPECT_EQ(
        ReasonOf(Runner<double>(asked, rng).Run(*backend_, kernel, {a}).status),
        "MATRIX_NOT_FINITE");
  });
}

}  // namespace
}  // namespace tensord::core
