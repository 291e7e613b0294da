#include "core/backend/cpu/factorization/decomposition_reference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "core/backend/cpu/factorization/decomposition.h"
#include "core/problem/refused_matrix.h"

namespace tensord::core {
namespace {

constexpr int kMostSweeps = 60;
constexpr double kNanosecondsPerFlop = 1;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// A rotation in the plane of two columns x and y, with a phase:
/// x' = c x - s conj(p) y, y' = s p x + c y.
template <typename W>
struct Rotation {
  double c, s;
  W phase;

  /// The one that makes [[of_x, between], [conj(between), of_y]] diagonal. See
  /// Golub and Van Loan, Matrix Computations, 8.5.2.
  static Rotation Of(double of_x, double of_y, W between) {
    const double size = std::abs(between);
    const double tau = (of_y - of_x) / (2 * size);
    const double t = (tau >= 0 ? 1 : -1) / (std::abs(tau) + std::hypot(1, tau));
    const double c = 1 / std::hypot(1, t);
    return {c, t * c, between / size};
  }
  void Apply(W* x, W* y, int64_t count, int64_t stride = 1) const {
    for (int64_t i = 0; i < count; ++i) {
      W& a = x[i * stride];
      W& b = y[i * stride];
      const W before = a;
      a = c * before - s * Conjugated(phase) * b;
      b = s * phase * before + c * b;
    }
  }
};

template <typename W>
W Dot(const W* x, const W* y, int64_t count) {
  W sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += Conjugated(x[i]) * y[i];
  return sum;
}

template <typename W>
double Norm(const W* x, int64_t count) {
  return std::sqrt(std::real(Dot(x, x, count)));
}

/// The length up to which a column's direction is nothing but rounding.
template <typename W>
double NegligibleLength(const W* x, int64_t rows, int64_t columns) {
  return kEpsilon * Norm(x, rows * columns);
}

/// Makes `columns` columns at x, rows long, orthogonal, but for negligible
/// ones, and applies the same rotations to v, an identity of as many. Gives
/// false if that does not end.
template <typename W>
bool Orthogonalize(W* x, int64_t rows, int64_t columns, W* v) {
  const double negligible = NegligibleLength(x, rows, columns);
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool has_rotated = false;
    for (int64_t i = 0; i < columns; ++i) {
      if (CurrentWork::ShouldStop()) return true;
      for (int64_t j = i + 1; j < columns; ++j) {
        W* const xi = x + i * rows;
        W* const xj = x + j * rows;
        const W between = Dot(xi, xj, rows);
        const double of_i = Norm(xi, rows), of_j = Norm(xj, rows);
        // As well as sums of so many round.
        const double rounding =
            kEpsilon * static_cast<double>(rows) * of_i * of_j;
        if (std::min(of_i, of_j) <= negligible ||
            std::abs(between) <= rounding) {
          continue;
        }
        has_rotated = true;
        const auto rotation =
            Rotation<W>::Of(of_i * of_i, of_j * of_j, between);
        rotation.Apply(xi, xj, rows);
        rotation.Apply(v + i * columns, v + j * columns, columns);
      }
    }
    if (!has_rotated) return true;
  }
  return false;
}

/// Makes column k of unit length and orthogonal to those before it, whatever it
/// was.
template <typename W>
void Complete(W* u, int64_t rows, int64_t k) {
  W* const column = u + k * rows;
  for (int64_t unit = 0; unit < rows; ++unit) {
    std::fill_n(column, rows, W(0));
    column[unit] = 1;
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t j = 0; j < k; ++j) {
        const W part = Dot(u + j * rows, column, rows);
        for (int64_t i = 0; i < rows; ++i) column[i] -= part * u[j * rows + i];
      }
    }
    const double norm = Norm(column, rows);
    // Of all unit vectors one has at least this much outside of k < rows
    // others.
    if (norm * norm * static_cast<double>(rows) < 0.5) continue;
    for (int64_t i = 0; i < rows; ++i) column[i] /= norm;
    return;
  }
}

/// The columns of `from`, from the largest in length on, each made of unit
/// length in `unit`, with its length, and the columns of v that belong to them.
template <typename W>
void SortColumns(const W* from, int64_t rows, int64_t count, const W* v,
                 W* unit, double* lengths, W* sorted_v) {
  std::vector<double> norms(static_cast<size_t>(count));
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t k = 0; k < count; ++k) {
    norms[static_cast<size_t>(k)] = Norm(from + k * rows, rows);
  }
  std::ranges::stable_sort(order, std::greater<>(), [&](int64_t k) {
    return norms[static_cast<size_t>(k)];
  });
  const double negligible = NegligibleLength(from, rows, count);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t at = order[static_cast<size_t>(k)];
    lengths[k] = norms[static_cast<size_t>(at)];
    std::copy_n(v + at * count, count, sorted_v + k * count);
    if (lengths[k] <= negligible) {
      Complete(unit, rows, k);
      continue;
    }
    for (int64_t i = 0; i < rows; ++i) {
      unit[k * rows + i] = from[at * rows + i] / lengths[k];
    }
  }
}

/// See DecompositionSolution.
struct ReferenceRoutines {
  using P = FactorizationProblem;

  template <typename T>
  using Work = Wide<T>;
  static constexpr bool kHearsStops = true;

  /// Room for a copy of the matrix on its side, and two squares of the shorter.
  static int64_t ScratchBytes(const P& problem) {
    const int64_t rows = ElementCount(problem.rows);
    const int64_t columns = ElementCount(problem.columns);
    const int64_t inner = std::min(rows, columns);
    const int64_t elements = problem.method == FactorizationMethod::kSvd
                                 ? 2 * rows * columns + 2 * inner * inner
                             : problem.method == FactorizationMethod::kEigh
                                 ? 2 * inner * inner
                                 : 0;
    return elements * (IsComplex(problem.type) ? 16 : 8);
  }
  static int64_t ValueCount(const P& problem) {
    return std::min(ElementCount(problem.rows), ElementCount(problem.columns));
  }
  static double Nanoseconds(const P& problem) {
    constexpr double kSweeps = 8;
    const double one =
        FlopCount(problem) / std::max<double>(1, ElementCount(problem.batch));
    return one * kNanosecondsPerFlop *
           (problem.method == FactorizationMethod::kCholesky ? 1 : kSweeps);
  }

  template <typename W>
  static absl::StatusOr<double> Svd(const Decomposed<W>& m,
                                    absl::FunctionRef<void()> /*reload*/) {
    const bool is_wide = m.rows < m.columns;
    const int64_t length = std::max(m.rows, m.columns), count = m.inner;
    W* const x = reinterpret_cast<W*>(m.scratch);
    W* const unit = x + length * count;
    W* const v = unit + length * count;
    W* const sorted_v = v + count * count;
    // A wide one is decomposed as its adjoint.
    double largest = 0;
    for (int64_t i = 0; i < m.rows * m.columns; ++i) {
      largest = std::max(largest, std::abs(m.matrix[i]));
    }
    const double scale = largest == 0 ? 1 : largest;
    for (int64_t c = 0; c < m.columns; ++c) {
      for (int64_t r = 0; r < m.rows; ++r) {
        const W element = m.matrix[c * m.rows + r] / scale;
        x[is_wide ? r * length + c : c * length + r] =
            is_wide ? Conjugated(element) : element;
      }
    }
    std::fill_n(v, count * count, W(0));
    for (int64_t k = 0; k < count; ++k) v[k * count + k] = 1;
    if (!Orthogonalize(x, length, count, v))
      return DidNotConverge(FactorizationMethod::kSvd, m.name);
    SortColumns(x, length, count, v, unit, m.values, sorted_v);
    for (int64_t k = 0; k < count; ++k) m.values[k] *= scale;
    // x = unit * values * sorted_v^H.
    const W* const left = is_wide ? sorted_v : unit;
    const W* const right = is_wide ? unit : sorted_v;
    std::copy_n(left, m.rows * count, m.left);
    for (int64_t c = 0; c < m.columns; ++c) {
      for (int64_t k = 0; k < count; ++k) {
        m.right[c * count + k] = Conjugated(right[k * m.columns + c]);
      }
    }
    return 0.0;
  }

  template <typename W>
  static absl::Status Eigh(const Decomposed<W>& m) {
    const int64_t n = m.inner;
    W* const x = reinterpret_cast<W*>(m.scratch);
    W* const v = x + n * n;
    double largest = 0;
    for (int64_t c = 0; c < n; ++c) {
      for (int64_t r = c; r < n; ++r) {
        largest = std::max(largest, std::abs(m.matrix[c * n + r]));
      }
    }
    const double scale = largest == 0 ? 1 : largest;
    for (int64_t c = 0; c < n; ++c) {
      for (int64_t r = c; r < n; ++r) {
        const W element = m.matrix[c * n + r] / scale;
        x[c * n + r] = r == c ? W(std::real(element)) : element;
        x[r * n + c] = Conjugated(x[c * n + r]);
      }
    }
    std::fill_n(v, n * n, W(0));
    for (int64_t k = 0; k < n; ++k) v[k * n + k] = 1;
    if (!Diagonalize(x, n, v))
      return DidNotConverge(FactorizationMethod::kEigh, m.name);
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    const auto value = [&](int64_t k) { return std::real(x[k * n + k]); };
    std::ranges::stable_sort(order, {}, value);
    for (int64_t k = 0; k < n; ++k) {
      const int64_t at = order[static_cast<size_t>(k)];
      m.values[k] = value(at) * scale;
      std::copy_n(v + at * n, n, m.matrix + k * n);
    }
    return absl::OkStatus();
  }

  template <typename W>
  static absl::Status Cholesky(const Decomposed<W>& m) {
    const int64_t n = m.inner;
    const auto l = [&](int64_t r, int64_t c) -> W& {
      return m.matrix[c * n + r];
    };
    for (int64_t c = 0; c < n && !CurrentWork::ShouldStop(); ++c) {
      double square = std::real(l(c, c));
      for (int64_t k = 0; k < c; ++k) square -= std::norm(l(c, k));
      if (!(square > 0)) return NotPositiveDefinite(m.name, c + 1);
      const double diagonal = std::sqrt(square);
      l(c, c) = diagonal;
      for (int64_t r = c + 1; r < n; ++r) {
        W sum = l(r, c);
        for (int64_t k = 0; k < c; ++k) sum -= l(r, k) * Conjugated(l(c, k));
        l(r, c) = sum / diagonal;
      }
    }
    return absl::OkStatus();
  }

 private:
  /// Rotates a Hermitian matrix x from both sides, and v from the right, until
  /// it is diagonal. Gives false if that does not end.
  template <typename W>
  static bool Diagonalize(W* x, int64_t n, W* v) {
    double all = 0;
    for (int64_t i = 0; i < n * n; ++i) all += std::norm(x[i]);
    const double small = kEpsilon * std::sqrt(all) / static_cast<double>(n);
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      bool has_rotated = false;
      for (int64_t i = 0; i < n; ++i) {
        if (CurrentWork::ShouldStop()) return true;
        for (int64_t j = i + 1; j < n; ++j) {
          const W between = x[j * n + i];  // row i, column j
          if (std::abs(between) <= small) continue;
          has_rotated = true;
          const auto rotation = Rotation<W>::Of(
              std::real(x[i * n + i]), std::real(x[j * n + j]), between);
          rotation.Apply(x + i * n, x + j * n, n);
          const Rotation<W> adjoint{rotation.c, rotation.s,
                                    Conjugated(rotation.phase)};
          adjoint.Apply(x + i, x + j, n, n);
          rotation.Apply(v + i * n, v + j * n, n);
          // So it is but for rounding, which would be rotated again.
          x[j * n + i] = x[i * n + j] = 0;
          x[i * n + i] = std::real(x[i * n + i]);
          x[j * n + j] = std::real(x[j * n + j]);
        }
      }
      if (!has_rotated) return true;
    }
    return false;
  }
};

}  // namespace

std::unique_ptr<const FactorizationSolution> SolveReferenceDecomposition(
    const FactorizationProblem& problem, ThreadPool& threads) {
  return std::make_unique<DecompositionSolution<ReferenceRoutines>>(
      problem, threads, ReferenceRoutines());
}

}  // namespace tensord::core
