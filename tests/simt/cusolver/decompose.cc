#include "tests/simt/cusolver/decompose.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

namespace tensord::simt {
namespace {

constexpr long double kEpsilon = std::numeric_limits<long double>::epsilon();
constexpr int kMostSweeps = 60;

long double NormOf(const NumberMatrix& a, int64_t column, int64_t from_row) {
  long double squares = 0;
  for (int64_t i = from_row; i < a.rows; ++i) {
    squares += std::norm(a(i, column));
  }
  return std::sqrt(squares);
}

/// Column x's adjoint times column y.
Number Inner(const NumberMatrix& a, int64_t x, int64_t y) {
  Number sum = 0;
  for (int64_t i = 0; i < a.rows; ++i) sum += std::conj(a(i, x)) * a(i, y);
  return sum;
}

NumberMatrix Identity(int64_t n) {
  NumberMatrix identity(n, n);
  for (int64_t i = 0; i < n; ++i) identity(i, i) = 1;
  return identity;
}

NumberMatrix AdjointOf(const NumberMatrix& a) {
  NumberMatrix adjoint(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) adjoint(j, i) = std::conj(a(i, j));
  }
  return adjoint;
}

/// A plane rotation of two columns, the second turned by a phase before.
struct Rotation {
  Number phase;
  long double cosine, sine;

  /// That which makes x^H y, or the element between x and y, zero: `between`,
  /// where `of_x` and `of_y` stand on the diagonal.
  Rotation(long double of_x, long double of_y, const Number& between)
      : phase(std::conj(between) / std::abs(between)) {
    const long double zeta = (of_y - of_x) / (2 * std::abs(between));
    const long double tangent =
        (zeta < 0 ? -1 : 1) / (std::abs(zeta) + std::hypot(1.0L, zeta));
    cosine = 1 / std::hypot(1.0L, tangent);
    sine = cosine * tangent;
  }
  void Apply(NumberMatrix& a, int64_t x, int64_t y) const {
    for (int64_t i = 0; i < a.rows; ++i) {
      const Number first = a(i, x), second = phase * a(i, y);
      a(i, x) = cosine * first - sine * second;
      a(i, y) = sine * first + cosine * second;
    }
  }
  /// Its adjoint, from the left: to rows.
  void ApplyAdjoint(NumberMatrix& a, int64_t x, int64_t y) const {
    for (int64_t j = 0; j < a.columns; ++j) {
      const Number first = a(x, j), second = std::conj(phase) * a(y, j);
      a(x, j) = cosine * first - sine * second;
      a(y, j) = sine * first + cosine * second;
    }
  }
};

/// Makes columns from `first` on orthonormal to those before and each other.
void CompleteBasis(NumberMatrix& a, int64_t first) {
  for (int64_t j = first; j < a.columns; ++j) {
    for (int64_t tried = 0; tried < a.rows; ++tried) {
      const int64_t unit = (j + tried) % a.rows;  // likely to do
      for (int64_t i = 0; i < a.rows; ++i) a(i, j) = i == unit ? 1 : 0;
      for (int pass = 0; pass < 2; ++pass) {
        for (int64_t k = 0; k < j; ++k) {
          const Number part = Inner(a, k, j);
          for (int64_t i = 0; i < a.rows; ++i) a(i, j) -= part * a(i, k);
        }
      }
      const long double norm = NormOf(a, j, 0);
      if (norm * norm * static_cast<long double>(2 * a.rows) < 1) continue;
      for (int64_t i = 0; i < a.rows; ++i) a(i, j) /= norm;
      break;
    }
  }
}

/// The columns of `a` in the order of `order`.
NumberMatrix Reordered(const NumberMatrix& a,
                       const std::vector<int64_t>& order) {
  NumberMatrix sorted(a.rows, a.columns);
  for (int64_t j = 0; j < a.columns; ++j) {
    for (int64_t i = 0; i < a.rows; ++i) {
      sorted(i, j) = a(i, order[static_cast<size_t>(j)]);
    }
  }
  return sorted;
}

}  // namespace

std::vector<Number> FactorQr(NumberMatrix& a) {
  std::vector<Number> all;
  for (int64_t k = 0; k < std::min(a.rows, a.columns); ++k) {
    const Number alpha = a(k, k);
    const long double norm = NormOf(a, k, k);
    if (NormOf(a, k, k + 1) == 0 && alpha.imag() == 0) {
      all.push_back(0);
      continue;
    }
    const long double beta = alpha.real() > 0 ? -norm : norm;
    const Number tau = (beta - alpha) / beta;
    all.push_back(tau);
    for (int64_t i = k + 1; i < a.rows; ++i) a(i, k) /= alpha - beta;
    a(k, k) = beta;
    for (int64_t j = k + 1; j < a.columns; ++j) {
      Number sum = a(k, j);
      for (int64_t i = k + 1; i < a.rows; ++i) {
        sum += std::conj(a(i, k)) * a(i, j);
      }
      sum *= std::conj(tau);
      a(k, j) -= sum;
      for (int64_t i = k + 1; i < a.rows; ++i) a(i, j) -= sum * a(i, k);
    }
  }
  return all;
}

void FormQ(NumberMatrix& a, const std::vector<Number>& tau) {
  NumberMatrix q(a.rows, a.columns);
  for (int64_t j = 0; j < a.columns; ++j) q(j, j) = 1;
  for (int64_t k = std::ssize(tau); k-- > 0;) {
    for (int64_t j = 0; j < q.columns; ++j) {
      Number sum = q(k, j);
      for (int64_t i = k + 1; i < a.rows; ++i) {
        sum += std::conj(a(i, k)) * q(i, j);
      }
      sum *= tau[static_cast<size_t>(k)];
      q(k, j) -= sum;
      for (int64_t i = k + 1; i < a.rows; ++i) q(i, j) -= sum * a(i, k);
    }
  }
  a = std::move(q);
}

Svd Decompose(const NumberMatrix& a) {
  if (a.rows < a.columns) {
    Svd svd = Decompose(AdjointOf(a));
    std::swap(svd.u, svd.v);
    return svd;
  }
  NumberMatrix x = a, v = Identity(a.columns);
  bool has_rotated = true;
  for (int sweep = 0; has_rotated && sweep < kMostSweeps; ++sweep) {
    has_rotated = false;
    for (int64_t p = 0; p < x.columns; ++p) {
      for (int64_t q = p + 1; q < x.columns; ++q) {
        const long double of_p = std::real(Inner(x, p, p));
        const long double of_q = std::real(Inner(x, q, q));
        const Number between = Inner(x, p, q);
        if (std::abs(between) <= 8 * kEpsilon * std::sqrt(of_p * of_q)) {
          continue;
        }
        has_rotated = true;
        const Rotation rotation(of_p, of_q, between);
        rotation.Apply(x, p, q);
        rotation.Apply(v, p, q);
      }
    }
  }
  std::vector<int64_t> order(static_cast<size_t>(x.columns));
  std::iota(order.begin(), order.end(), 0);
  std::vector<long double> norms;
  for (int64_t j = 0; j < x.columns; ++j) norms.push_back(NormOf(x, j, 0));
  const auto norm = [&](int64_t j) { return norms[static_cast<size_t>(j)]; };
  std::ranges::stable_sort(order, std::greater<>(), norm);
  Svd svd{NumberMatrix(a.rows, a.rows), Reordered(v, order), {}};
  int64_t rank = 0;
  for (const int64_t j : order) {
    svd.s.push_back(norm(j));
    const long double least =
        static_cast<long double>(a.rows) * kEpsilon * svd.s.front();
    if (norm(j) <= least || norm(j) == 0) continue;
    for (int64_t i = 0; i < a.rows; ++i) svd.u(i, rank) = x(i, j) / norm(j);
    ++rank;
  }
  CompleteBasis(svd.u, rank);
  return svd;
}

std::vector<long double> Diagonalize(NumberMatrix& a) {
  const int64_t n = a.rows;
  NumberMatrix x(n, n), v = Identity(n);
  long double squares = 0;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i) {
      x(i, j) = a(i, j);
      x(j, i) = std::conj(a(i, j));
      squares += std::norm(a(i, j));
    }
    x(j, j) = std::real(a(j, j));
  }
  bool has_rotated = true;
  for (int sweep = 0; has_rotated && sweep < kMostSweeps; ++sweep) {
    has_rotated = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        if (std::norm(x(p, q)) <= kEpsilon * kEpsilon * squares) continue;
        has_rotated = true;
        const Rotation rotation(x(p, p).real(), x(q, q).real(), x(p, q));
        rotation.Apply(x, p, q);
        rotation.ApplyAdjoint(x, p, q);
        rotation.Apply(v, p, q);
      }
    }
  }
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](int64_t j) { return x(j, j).real(); };
  std::ranges::stable_sort(order, std::less<>(), value);
  a = Reordered(v, order);
  std::vector<long double> values;
  for (const int64_t j : order) values.push_back(value(j));
  return values;
}

int FactorCholesky(NumberMatrix& a) {
  for (int64_t k = 0; k < a.rows; ++k) {
    long double square = std::real(a(k, k));
    for (int64_t j = 0; j < k; ++j) square -= std::norm(a(k, j));
    if (square <= 0) return static_cast<int>(k) + 1;  // it overlooks NaN
    const long double diagonal = std::sqrt(square);
    a(k, k) = diagonal;
    for (int64_t i = k + 1; i < a.rows; ++i) {
      Number sum = a(i, k);
      for (int64_t j = 0; j < k; ++j) sum -= a(i, j) * std::conj(a(k, j));
      a(i, k) = sum / diagonal;
    }
  }
  return 0;
}

int FactorLu(NumberMatrix& a, std::vector<int>& pivots) {
  int info = 0;
  pivots.clear();
  for (int64_t k = 0; k < a.rows; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < a.rows; ++i) {
      if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
    }
    pivots.push_back(static_cast<int>(best) + 1);
    if (a(best, k) == Number(0)) {
      if (info == 0) info = static_cast<int>(k) + 1;
      continue;
    }
    for (int64_t j = 0; j < a.columns; ++j) std::swap(a(k, j), a(best, j));
    for (int64_t i = k + 1; i < a.rows; ++i) {
      a(i, k) /= a(k, k);
      for (int64_t j = k + 1; j < a.columns; ++j) a(i, j) -= a(i, k) * a(k, j);
    }
  }
  return info;
}

void SolveTriangle(const NumberMatrix& a, const TriangleOf& triangle,
                   NumberMatrix& b) {
  // Whose rows depend on those before.
  const bool is_forward = triangle.is_lower != triangle.is_adjoint;
  const auto at = [&](int64_t i, int64_t j) {
    return triangle.is_adjoint ? std::conj(a(j, i)) : a(i, j);
  };
  for (int64_t side = 0; side < b.columns; ++side) {
    for (int64_t step = 0; step < a.rows; ++step) {
      const int64_t i = is_forward ? step : a.rows - 1 - step;
      Number sum = b(i, side);
      for (int64_t done = 0; done < step; ++done) {
        const int64_t j = is_forward ? done : a.rows - 1 - done;
        sum -= at(i, j) * b(j, side);
      }
      b(i, side) = triangle.has_unit_diagonal ? sum : sum / at(i, i);
    }
  }
}

void SolveLu(const NumberMatrix& a, const std::vector<int>& pivots,
             NumberMatrix& b) {
  for (int64_t k = 0; k < a.rows; ++k) {
    const int64_t other = pivots[static_cast<size_t>(k)] - 1;
    for (int64_t j = 0; j < b.columns; ++j) std::swap(b(k, j), b(other, j));
  }
  SolveTriangle(a, {.is_lower = true, .has_unit_diagonal = true}, b);
  SolveTriangle(a, {.is_lower = false}, b);
}

}  // namespace tensord::simt
