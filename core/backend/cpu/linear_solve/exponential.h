// Exponentials of matrices, whoever multiplies and eliminates.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/backend/cpu/linear_solve/equations.h"
#include "core/base/checked_math.h"
#include "core/device/interruption.h"
#include "core/ops/linear_solve.h"
#include "core/problem/exponential.h"

namespace tensord::core {

/// Squares of the matrix's extent that an exponential is computed in, from
/// equations.matrix on.
inline constexpr int64_t kExponentialSquares = 7;

/// exp(A) = r(2^-s A)^(2^s), r = p / q being a Pade approximant of degree m
/// around 0, with m and s as ExponentialChooser finds them.
///
/// Steps is what EquationsSolution says of Begin(), with W.
template <typename W, typename Steps>
class Exponential {
 public:
  /// A triangle's other elements are zeros.
  Exponential(const Equations<W>& equations, MatrixStructure structure,
              const Steps& steps, ForParts for_parts)
      : structure_(structure),
        n_(equations.extent),
        steps_(steps),
        for_parts_(for_parts),
        a_(equations.matrix),
        result_(equations.right()) {
    W* next = result_;
    for (W** const square : {&a2_, &a4_, &a6_, &rest_, &sum_}) {
      *square = next += n_ * n_;
    }
  }

  /// Replaces equations.right() by the exponential of equations.matrix, which
  /// is finite. Gives 0, or the first pivot that is none, counted from 1.
  int64_t Compute() {
    if (structure_ == MatrixStructure::kGeneral) structure_ = FindTriangle();
    double norm = Norm(a_);
    if (norm > kBalancesAbove) Balance(norm);
    const ExponentialChoice choice = Choose(norm);
    if (Stops()) return 0;
    if (choice.degree <= 9) {
      SetQuotientByPowers(choice.degree);
    } else {
      SetQuotient13();
    }
    if (Stops()) return 0;
    const int64_t pivot = Solve();
    if (pivot > 0) return pivot;
    W* from = result_;
    W* to = a2_;
    for (int k = 0; k < choice.squarings && !Stops(); ++k) {
      steps_.Multiply(from, from, to);
      std::swap(from, to);
    }
    if (from != result_) {
      ForColumns([&](int64_t begin, int64_t end) {
        std::copy(from + begin, from + end, result_ + begin);
      });
    }
    if (!powers_.empty()) Unbalance(result_);
    return 0;
  }

 private:
  using Real = decltype(std::abs(W()));
  struct Summand {
    double factor;
    const W* matrix;
  };

  static bool Stops() { return CurrentWork::ShouldStop(); }

  /// The triangle beside which all is 0, if there is one: its quotient is
  /// solved for without pivots, which would spoil the zeros.
  MatrixStructure FindTriangle() const {
    const auto is_zero = [&](int64_t column, int64_t begin, int64_t end) {
      return std::all_of(a_ + column * n_ + begin, a_ + column * n_ + end,
                         [](const W& x) { return x == W(0); });
    };
    bool is_lower = true, is_upper = true;
    for (int64_t k = 0; k < n_ && (is_lower || is_upper); ++k) {
      is_lower = is_lower && is_zero(k, 0, k);
      is_upper = is_upper && is_zero(k, k + 1, n_);
    }
    return is_lower   ? MatrixStructure::kLowerTriangular
           : is_upper ? MatrixStructure::kUpperTriangular
                      : MatrixStructure::kGeneral;
  }

  /// Of the matrix and the result.
  int64_t Solve() const {
    switch (structure_) {
      case MatrixStructure::kLowerTriangular:
        steps_.SolveLower(/*has_unit_diagonal=*/false);
        return 0;
      case MatrixStructure::kUpperTriangular: break;
      default:
        if (const int64_t pivot = steps_.FactorGeneral(); pivot > 0) {
          return pivot;
        }
    }
    steps_.SolveUpper(/*has_unit_diagonal=*/false);
    return 0;
  }

  /// Balances the matrix if that makes its norm far smaller: column by column,
  /// as Parlett and Reinsch, Balancing a Matrix (1969), do.
  void Balance(double& norm) {
    powers_.assign(static_cast<size_t>(n_), 0);
    constexpr int kMostSweeps = 32;
    bool has_changed = true;
    for (int sweep = 0; sweep < kMostSweeps && has_changed && !Stops();
         ++sweep) {
      has_changed = false;
      for (int64_t k = 0; k < n_ && !Stops(); ++k) {
        const int32_t power = BalancingPower(LargestExponent(k, n_),
                                             LargestExponent(k * n_, 1), 2);
        if (power > -2 && power < 2) continue;
        for (int64_t i = 0; i < n_; ++i) {
          if (i == k) continue;
          Multiply(a_[i + k * n_], power);
          Multiply(a_[k + i * n_], -power);
        }
        powers_[static_cast<size_t>(k)] += power;
        has_changed = true;
      }
    }
    const double balanced = Norm(a_);
    if (balanced * kLeastGain <= norm) {
      norm = balanced;
      return;
    }
    Unbalance(a_);
    powers_.clear();
  }
  /// Of the elements from `first` on, but for that on the diagonal.
  int32_t LargestExponent(int64_t first, int64_t stride) const {
    Real largest = 0;
    for (int64_t i = 0, at = first; i < n_; ++i, at += stride) {
      if (at % (n_ + 1) == 0) continue;
      largest = std::max(
          {largest, std::abs(std::real(a_[at])), std::abs(std::imag(a_[at]))});
    }
    return largest == 0 ? kOfZero : std::ilogb(largest);
  }
  static void Multiply(W& element, int power) {
    if constexpr (std::is_floating_point_v<W>) {
      element = std::ldexp(element, power);
    } else {
      element = {std::ldexp(element.real(), power),
                 std::ldexp(element.imag(), power)};
    }
  }
  /// D M D^-1 in place of a matrix M.
  void Unbalance(W* matrix) {
    ForColumns([&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const auto row = static_cast<size_t>(at % n_);
        const auto column = static_cast<size_t>(at / n_);
        const int power = powers_[row] - powers_[column];
        if (power != 0) Multiply(matrix[at], power);
      }
    });
  }

  /// Leaves the powers that the degree takes, scaled.
  ExponentialChoice Choose(double norm) {
    ExponentialChooser chooser(norm, std::is_same_v<Real, float>);
    if (const int power = chooser.power_before(); power > 0) Scale(a_, power);
    const auto log2_of_power = [&](int power) { return Log2OfPower(power); };
    steps_.Multiply(a_, a_, a2_);
    if (chooser.TakesSquare(Norm(a2_), log2_of_power) || Stops()) {
      return chooser.choice();
    }
    steps_.Multiply(a2_, a2_, a4_);
    if (chooser.TakesFourth(Norm(a4_), log2_of_power) || Stops()) {
      return chooser.choice();
    }
    steps_.Multiply(a2_, a4_, a6_);
    chooser.TakeSixth(Norm(a6_), log2_of_power);
    if (chooser.choice().degree == 9) steps_.Multiply(a4_, a4_, rest_);
    if (const int power = chooser.power_behind(); power > 0) {
      Scale(a_, power);
      Scale(a2_, 2 * power);
      Scale(a4_, 4 * power);
      Scale(a6_, 6 * power);
    }
    return chooser.choice();
  }

  /// q in place of the matrix, and p behind it: the even terms minus and plus
  /// the odd ones.
  void SetQuotientByPowers(int degree) {
    const std::vector<double> c = PadeCoefficients(degree);
    const W* const powers[] = {a2_, a4_, a6_, rest_};
    const auto sum = [&](int first) {
      std::vector<Summand> summands;
      for (int k = first + 2; k <= degree; k += 2) {
        summands.push_back({c[k], powers[k / 2 - 1]});
      }
      SetSum(c[first], summands);
    };
    sum(1);
    steps_.Multiply(a_, sum_, result_);
    sum(0);
    Divide();
  }
  void SetQuotient13() {
    const std::vector<double> c = PadeCoefficients(13);
    const auto sum = [&](int first) {
      SetSum(0,
             {{c[first + 12], a6_}, {c[first + 10], a4_}, {c[first + 8], a2_}});
      std::swap(sum_, rest_);
      steps_.Multiply(a6_, rest_, sum_);
      SetSum(c[first], {{1, sum_},
                        {c[first + 6], a6_},
                        {c[first + 4], a4_},
                        {c[first + 2], a2_}});
    };
    sum(1);
    steps_.Multiply(a_, sum_, result_);
    sum(0);
    Divide();
  }
  /// Of odd terms in the result and even ones in the sum.
  void Divide() {
    ForColumns([&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        a_[i] = sum_[i] - result_[i];
        result_[i] = sum_[i] + result_[i];
      }
    });
  }

  /// The sum becomes factor * identity + the summands, of which it may be the
  /// first.
  void SetSum(double factor, const std::vector<Summand>& summands) {
    ForColumns([&](int64_t begin, int64_t end) {
      bool is_first = true;
      for (const auto& [own_factor, matrix] : summands) {
        const auto own = static_cast<Real>(own_factor);
        if (is_first) {
          for (int64_t i = begin; i < end; ++i) sum_[i] = own * matrix[i];
        } else {
          for (int64_t i = begin; i < end; ++i) sum_[i] += own * matrix[i];
        }
        is_first = false;
      }
      for (int64_t k = begin / n_; k < end / n_; ++k) {
        sum_[k * (n_ + 1)] += static_cast<Real>(factor);
      }
    });
  }

  void Scale(W* matrix, int power) {
    const auto factor = static_cast<Real>(std::ldexp(1.0, -power));
    ForColumns([&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) matrix[i] *= factor;
    });
  }

  /// The largest sum of absolute values of a column.
  double Norm(const W* matrix) {
    const double norm = LargestSum([&](int64_t row, int64_t column) {
      const W& x = matrix[row + column * n_];
      const auto real = static_cast<double>(std::real(x));
      if constexpr (std::is_floating_point_v<W>) return std::abs(real);
      const auto imaginary = static_cast<double>(std::imag(x));
      return std::sqrt(real * real + imaginary * imaginary);
    });
    if (std::is_floating_point_v<W> || std::isfinite(norm)) return norm;
    return LargestSum([&](int64_t row, int64_t column) {  // squares overflowed
      return static_cast<double>(std::abs(matrix[row + column * n_]));
    });
  }

  /// The logarithm of the norm of that power of the matrix's absolute values.
  double Log2OfPower(int power) {
    ForColumns([&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum_[i] = std::abs(a_[i]);
    });
    std::vector<double> from(static_cast<size_t>(n_), 1);
    double log2 = 0;
    for (int k = 0; k < power && !Stops(); ++k) {
      const double* const weights = from.data();
      const double largest = LargestSum([&](int64_t row, int64_t column) {
        return static_cast<double>(std::real(sum_[row + column * n_])) *
               weights[row];
      });
      if (largest == 0) return -std::numeric_limits<double>::infinity();
      log2 += std::log2(largest);
      for (double& sum : sums_) sum /= largest;
      std::swap(from, sums_);
    }
    return log2;
  }

  /// The largest sum of a column of term(row, column); all are in sums_.
  template <typename Term>
  double LargestSum(const Term& term) {
    constexpr int64_t kLanes = 16;  // so that additions do not wait in a row
    sums_.assign(static_cast<size_t>(n_), 0);
    ForColumns([&](int64_t begin, int64_t end) {
      for (int64_t column = begin / n_; column < end / n_; ++column) {
        double lanes[kLanes] = {};
        int64_t row = 0;
        for (; row + kLanes <= n_; row += kLanes) {
          for (int64_t lane = 0; lane < kLanes; ++lane) {
            lanes[lane] += term(row + lane, column);
          }
        }
        for (; row < n_; ++row) lanes[0] += term(row, column);
        double sum = 0;
        for (const double lane : lanes) sum += lane;
        sums_[static_cast<size_t>(column)] = sum;
      }
    });
    return *std::ranges::max_element(sums_);
  }

  /// Calls body(begin, end) for the elements of some columns at a time.
  template <typename Body>
  void ForColumns(const Body& body) {
    constexpr int64_t kElements = 1 << 16;
    const int64_t columns = std::clamp<int64_t>(kElements / n_, 1, n_);
    for_parts_(CeilDivide(n_, columns), [&](int64_t part) {
      body(part * columns * n_, std::min(n_, (part + 1) * columns) * n_);
    });
  }

  MatrixStructure structure_;
  const int64_t n_;
  const Steps& steps_;
  ForParts for_parts_;
  W* const a_;
  W* const result_;
  W *a2_, *a4_, *a6_;
  W* rest_;  // a^8, or for sums
  W* sum_;
  std::vector<double> sums_;     // (column)
  std::vector<int32_t> powers_;  // (column): those of D; empty: not balanced
};

}  // namespace tensord::core
