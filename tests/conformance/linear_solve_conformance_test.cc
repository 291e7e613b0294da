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
#include "tests/conformance/decomposition_runner.h"
#include "tests/conformance/matrix_conformance.h"

namespace tensord::core {
namespace {

using ::testing::HasSubstr;
using Structure = MatrixStructure;

/// How a kernel is asked.
struct AskedSolve {
  Structure structure = Structure::kGeneral;
  Shape shape;  // rows and columns
  std::vector<int64_t> sides = {};
  bool has_b = true;  // else the rows are the sides
  bool has_unit_diagonal = false;
  bool conjugates = false;

  int64_t extent() const { return shape.row_count(); }
  int64_t side_count() const {
    return has_b ? Shape::Product(sides) : extent();
  }
};

bool IsRead(const AskedSolve& asked, int64_t row, int64_t column) {
  if (asked.has_unit_diagonal && row == column) return false;
  switch (asked.structure) {
    case Structure::kGeneral: return true;
    case Structure::kUpperTriangular: return row <= column;
    default: return row >= column;
  }
}

/// The matrix that elements stand for of which those are read.
Matrix Meant(const AskedSolve& asked, const Matrix& a) {
  Matrix meant(a.rows, a.columns);
  const bool is_hermitian = asked.structure == Structure::kHermitian ||
                            asked.structure == Structure::kPositiveDefinite;
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) {
      if (IsRead(asked, i, j)) {
        meant(i, j) = is_hermitian && i == j ? Wide(a(i, j).real()) : a(i, j);
      } else if (is_hermitian) {
        meant(i, j) = std::conj(a(j, i));
      }
    }
    if (asked.has_unit_diagonal) meant(i, i) = 1;
  }
  if (asked.conjugates) {
    for (Wide& element : meant.elements) element = std::conj(element);
  }
  return meant;
}

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

/// Runs a kernel on equations in tensors of modes and layouts of any order, and
/// checks that nothing was written between the elements.
template <typename T>
class SolveRunner {
 public:
  SolveRunner(const AskedSolve& asked, ElementType type, std::mt19937& rng)
      : asked_(asked) {
    const Modes batch = Add(asked.shape.batch), rows = Add(asked.shape.rows),
                columns = Add(asked.shape.columns),
                sides = Add(asked.has_b ? asked.sides : asked.shape.rows);
    desc_.structure = asked.structure;
    desc_.has_unit_diagonal = asked.has_unit_diagonal;
    // Rows are numbered by b, or else by a, columns and sides by d.
    desc_.a = RandomOperand(type, Joined(batch, rows, columns), extents_,
                            !asked.has_b, rng);
    if (asked.has_b) {
      desc_.b =
          RandomOperand(type, Joined(sides, batch, rows), extents_, true, rng);
    }
    desc_.d =
        RandomOperand(type, Joined(batch, columns, sides), extents_, true, rng);
    if (asked.conjugates) {
      desc_.a.unary = UnaryOperator::kConj;
      if (desc_.b) desc_.b->unary = UnaryOperator::kConj;
    }
    EXPECT_EQ(Validate(desc_), absl::OkStatus());
  }

  /// `a` and `b` are rounded; what is not to be read becomes NaN.
  absl::Status Run(Backend& backend, const LinearSolveKernel& kernel,
                   std::vector<Matrix>& a, std::vector<Matrix>& b,
                   std::vector<Matrix>& d) {
    constexpr RealOf<T> kNan = std::numeric_limits<RealOf<T>>::quiet_NaN();
    const SharedArray<T> of_a(backend, SpanElements(desc_.a.layout), T(kNan));
    const SharedArray<T> of_b(
        backend, desc_.b ? SpanElements(desc_.b->layout) : 1, T(kNan));
    const SharedArray<T> of_d(backend, SpanElements(desc_.d.layout) + 1,
                              Sentinel<T>());
    const int64_t n = asked_.extent(), m = asked_.side_count();
    for (int64_t x = 0; x < std::ssize(a); ++x) {
      const auto index = static_cast<size_t>(x);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const T element = Rounded<T>(a[index](i, j));
          a[index](i, j) = Wide(element);
          if (!IsRead(asked_, i, j)) continue;
          of_a[OffsetIn(desc_.a, At(x, i, j, 0))] = element;
        }
        for (int64_t k = 0; k < m && asked_.has_b; ++k) {
          const T element = Rounded<T>(b[index](i, k));
          of_b[OffsetIn(*desc_.b, At(x, i, 0, k))] = element;
          b[index](i, k) =
              asked_.conjugates ? std::conj(Wide(element)) : Wide(element);
        }
      }
    }
    const absl::Status status = RunKernel(backend, kernel, Canonicalize(desc_),
                                          {.a = of_a.data(),
                                           .b = desc_.b ? of_b.data() : nullptr,
                                           .d = of_d.data()});
    if (!status.ok()) return status;
    EXPECT_EQ(
        std::ranges::count_if(of_d, [](const T& x) { return !IsSentinel(x); }),
        std::ssize(a) * n * m);
    for (int64_t x = 0; x < std::ssize(a); ++x) {
      Matrix& own = d.emplace_back(n, m);
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t k = 0; k < m; ++k) {
          own(j, k) = Wide(of_d[OffsetIn(desc_.d, At(x, 0, j, k))]);
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  Modes Add(const std::vector<int64_t>& from) {
    Modes to;
    for (const int64_t extent : from) {
      to.push_back(static_cast<Mode>(extents_.size()));
      extents_.push_back(extent);
    }
    return to;
  }
  /// Values of all modes; positions count with the last mode fastest.
  std::vector<int64_t> At(int64_t batch, int64_t row, int64_t column,
                          int64_t side) const {
    return ValuesOf({{asked_.shape.batch, batch},
                     {asked_.shape.rows, row},
                     {asked_.shape.columns, column},
                     {asked_.has_b ? asked_.sides : asked_.shape.rows, side}});
  }

  const AskedSolve asked_;
  std::vector<int64_t> extents_;
  LinearSolveDesc desc_;
};

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

template <typename Check>
void ForEachSolvedType(const Check& check) {
  check.template operator()<float>(ElementType::kFloat32);
  check.template operator()<double>(ElementType::kFloat64);
  check.template operator()<std::complex<float>>(ElementType::kComplex64);
  check.template operator()<std::complex<double>>(ElementType::kComplex128);
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

std::vector<int64_t> RandomSides(size_t most_modes, int64_t most,
                                 std::mt19937& rng) {
  std::vector<int64_t> chosen(rng() % (most_modes + 1));
  for (int64_t& extent : chosen) {
    extent = 1 + static_cast<int64_t>(rng() % most);
  }
  return chosen;
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
