// Kernels that solve equations and compute exponentials, run on matrices.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "core/ops/linear_solve.h"
#include "gtest/gtest.h"
#include "tests/conformance/matrix/decomposition_runner.h"

namespace tensord::core {

using Structure = MatrixStructure;

/// How a kernel is asked.
struct AskedSolve {
  Structure structure = Structure::kGeneral;
  Shape shape;  // rows and columns
  std::vector<int64_t> sides = {};
  bool has_b = true;  // else the rows are the sides
  bool has_unit_diagonal = false;
  bool conjugates = false;
  MatrixFunction function = MatrixFunction::kInverse;

  bool is_exponential() const {
    return function == MatrixFunction::kExponential;
  }
  int64_t extent() const { return shape.row_count(); }
  int64_t side_count() const {
    return has_b ? Shape::Product(sides) : extent();
  }
};

inline bool IsRead(const AskedSolve& asked, int64_t row, int64_t column) {
  if (asked.has_unit_diagonal && row == column) return false;
  switch (asked.structure) {
    case Structure::kGeneral: return true;
    case Structure::kUpperTriangular: return row <= column;
    default: return row >= column;
  }
}

/// The matrix that elements stand for of which those are read.
inline Matrix Meant(const AskedSolve& asked, const Matrix& a) {
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
    desc_.function = asked.function;
    desc_.structure = asked.structure;
    desc_.has_unit_diagonal = asked.has_unit_diagonal;
    // Rows are numbered by b, or else by a, columns and sides by d.
    desc_.a = RandomOperand(type, Joined(batch, rows, columns), extents_,
                            !asked.has_b, rng);
    if (asked.has_b) {
      desc_.b =
          RandomOperand(type, Joined(sides, batch, rows), extents_, true, rng);
    }
    desc_.d = RandomOperand(
        type, Joined(batch, asked.is_exponential() ? rows : columns, sides),
        extents_, true, rng);
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
          const auto at =
              asked_.is_exponential() ? At(x, j, 0, k) : At(x, 0, j, k);
          own(j, k) = Wide(of_d[OffsetIn(desc_.d, at)]);
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

template <typename Check>
void ForEachSolvedType(const Check& check) {
  check.template operator()<float>(ElementType::kFloat32);
  check.template operator()<double>(ElementType::kFloat64);
  check.template operator()<std::complex<float>>(ElementType::kComplex64);
  check.template operator()<std::complex<double>>(ElementType::kComplex128);
}

inline std::vector<int64_t> RandomSides(size_t most_modes, int64_t most,
                                        std::mt19937& rng) {
  std::vector<int64_t> chosen(rng() % (most_modes + 1));
  for (int64_t& extent : chosen) {
    extent = 1 + static_cast<int64_t>(rng() % most);
  }
  return chosen;
}

}  // namespace tensord::core
