#include "core/backend/cpu/linear_solve/linear_solve_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/backend/cpu/linear_solve/equations.h"
#include "core/backend/cpu/linear_solve/equations_solution.h"
#include "core/base/status.h"
#include "core/device/interruption.h"

namespace tensord::core {
namespace {

using P = LinearSolveProblem;

/// The steps of one elimination.
template <typename W>
class ReferenceElimination {
 public:
  explicit ReferenceElimination(const Equations<W>& equations)
      : equations_(equations), n_(equations.extent) {}

  /// U in place of the upper triangle, and L^-1 * P^-1 of what is right of it.
  int64_t FactorGeneral() const {
    const int64_t end = n_ + equations_.sides;
    for (int64_t k = 0; k < n_; ++k) {
      if (CurrentWork::ShouldStop()) return 0;
      int64_t largest = k;
      for (int64_t i = k + 1; i < n_; ++i) {
        if (std::abs(At(i, k)) > std::abs(At(largest, k))) largest = i;
      }
      if (At(largest, k) == W(0)) return k + 1;
      for (int64_t j = k; j < end && largest != k; ++j) {
        std::swap(At(k, j), At(largest, j));
      }
      for (int64_t i = k + 1; i < n_; ++i) At(i, k) /= At(k, k);
      for (int64_t j = k + 1; j < end; ++j) {
        for (int64_t i = k + 1; i < n_; ++i) At(i, j) -= At(i, k) * At(k, j);
      }
    }
    return 0;
  }
  /// L in place of the lower triangle.
  int64_t FactorPositiveDefinite() const {
    for (int64_t j = 0; j < n_; ++j) {
      if (CurrentWork::ShouldStop()) return 0;
      double square = std::real(At(j, j));
      for (int64_t k = 0; k < j; ++k) square -= std::norm(At(j, k));
      if (!(square > 0)) return j + 1;
      const double diagonal = std::sqrt(square);
      At(j, j) = diagonal;
      for (int64_t i = j + 1; i < n_; ++i) {
        for (int64_t k = 0; k < j; ++k) {
          At(i, j) -= At(i, k) * Conjugated(At(j, k));
        }
        At(i, j) /= diagonal;
      }
    }
    return 0;
  }

  void SolveLower(bool has_unit_diagonal) const {
    ForSides([&](W* x) {
      for (int64_t k = 0; k < n_; ++k) {
        if (!has_unit_diagonal) x[k] /= At(k, k);
        for (int64_t i = k + 1; i < n_; ++i) x[i] -= At(i, k) * x[k];
      }
    });
  }
  void SolveUpper(bool has_unit_diagonal) const {
    ForSides([&](W* x) {
      for (int64_t k = n_; k-- > 0;) {
        if (!has_unit_diagonal) x[k] /= At(k, k);
        for (int64_t i = 0; i < k; ++i) x[i] -= At(i, k) * x[k];
      }
    });
  }
  void SolveLowerAdjoint() const {
    ForSides([&](W* x) {
      for (int64_t k = n_; k-- > 0;) {
        for (int64_t i = k + 1; i < n_; ++i) {
          x[k] -= Conjugated(At(i, k)) * x[i];
        }
        x[k] /= std::real(At(k, k));
      }
    });
  }

  void Multiply(const W* a, const W* b, W* to) const {
    for (int64_t j = 0; j < n_ && !CurrentWork::ShouldStop(); ++j) {
      W* const column = to + j * n_;
      std::fill_n(column, n_, W(0));
      for (int64_t k = 0; k < n_; ++k) {
        for (int64_t i = 0; i < n_; ++i) {
          column[i] += a[i + k * n_] * b[k + j * n_];
        }
      }
    }
  }

 private:
  W& At(int64_t row, int64_t column) const {
    return equations_.matrix[row + column * n_];
  }
  template <typename Body>
  void ForSides(const Body& body) const {
    for (int64_t side = 0; side < equations_.sides; ++side) {
      if (CurrentWork::ShouldStop()) return;
      body(equations_.right() + side * n_);
    }
  }

  const Equations<W>& equations_;
  const int64_t n_;
};

/// See EquationsSolution.
struct ReferenceRoutines {
  template <typename T>
  using Work = Wide<T>;

  static double Nanoseconds(const P& problem, int /*thread_count*/) {
    constexpr double kNanosecondsPerFlop = 2, kNanosecondsPerMatrix = 100;
    const auto batch =
        static_cast<double>(std::max<int64_t>(1, ElementCount(problem.batch)));
    return kNanosecondsPerMatrix +
           kNanosecondsPerFlop * FlopCount(problem) / batch;
  }

  template <typename W>
  static ReferenceElimination<W> Begin(const Equations<W>& equations,
                                       ForParts) {
    return ReferenceElimination<W>(equations);
  }
};

}  // namespace

std::unique_ptr<const LinearSolveKernel> CreateReferenceLinearSolve(
    ThreadPool& threads) {
  using Solution = EquationsSolution<ReferenceRoutines>;
  return std::make_unique<SimpleLinearSolve>(
      "cpu.solve.reference",
      [&threads](const P& problem) -> SimpleLinearSolve::Solved {
        TENSORD_RETURN_IF_ERROR(Solution::CheckSize(problem));
        return std::make_unique<Solution>(problem, threads,
                                          ReferenceRoutines());
      });
}

}  // namespace tensord::core
