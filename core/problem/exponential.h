// How an exponential of a matrix is approximated, on any device.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"

namespace tensord::core {

/// exp(A) is r(2^-s A)^(2^s), r being the Pade approximant of that degree.
struct ExponentialChoice {
  int degree = 13;    // 3, 5, 7, 9 or 13
  int squarings = 0;  // s
};

/// The coefficients of the numerator, from that of A^0, 1, to that of A^degree.
/// Those of the denominator have alternating signs.
std::vector<double> PadeCoefficients(int degree);

/// Matrices may be balanced first, D^-1 A D for A with a D of powers of two:
/// what is large because of its scale alone would be squared in vain, and lose
/// digits. It is done where that makes the norm far smaller, as it may cost
/// digits, too (Watkins, A Case Where Balancing Is Harmful, 2006).
inline constexpr double kBalancesAbove = 16;  // this norm
inline constexpr double kLeastGain = 8;       // by which the norm is divided

// The exponent of what is 0.
inline constexpr int32_t kOfZero = -100'000;
/// The power of two that a column is multiplied by, and its row divided by, to
/// balance it. Given are the exponents of the largest element of either beside
/// the diagonal; `part` is 2, or 4 where all columns change at once.
constexpr int32_t BalancingPower(int32_t of_row, int32_t of_column,
                                 int32_t part) {
  // What stands alone is made less than 1.
  if (of_column == kOfZero) {
    return of_row == kOfZero || of_row < 0 ? 0 : (2 * of_row + part) / part;
  }
  if (of_row == kOfZero) {
    return of_column < 0 ? 0 : -(2 * of_column + part) / part;
  }
  const int32_t difference = of_row - of_column;
  return (difference + (difference < 0 ? -part : part) / 2) / part;
}

/// Chooses by norms of the first powers of a matrix, as they are computed: the
/// backward error is at most the rounding of a number. Norms are the largest
/// sum of absolute values of a column. See Al-Mohy and Higham, A New Scaling
/// and Squaring Algorithm for the Matrix Exponential (2009), algorithm 5.1;
/// but of the eighth and tenth power bounds by the others are taken.
///
/// Each of Takes...() is asked when the one before said no, and says whether
/// the choice is made; with the sixth power it is. log2_of_power(p) is the
/// logarithm of the norm of the p-th power of the matrix's absolute values,
/// after division by 2^power_before().
class ExponentialChooser {
 public:
  using LogOfPower = absl::FunctionRef<double(int power)>;

  /// `norm` is that of the matrix, whose elements are finite.
  ExponentialChooser(double norm, bool is_single);

  /// The power of two that the matrix is divided by first, lest its powers
  /// overflow.
  int power_before() const { return before_; }

  bool TakesSquare(double norm, LogOfPower log2_of_power);
  bool TakesFourth(double norm, LogOfPower log2_of_power);
  void TakeSixth(double norm, LogOfPower log2_of_power);

  /// The power of two that it is divided by once more, when A^6 is known.
  int power_behind() const { return behind_; }
  ExponentialChoice choice() const { return {degree_, before_ + behind_}; }

 private:
  /// Whether a degree is enough where no root of a power's norm is larger.
  bool Suffices(int degree, double root, LogOfPower log2_of_power);
  /// How much more the matrix is to be divided by, after 2^power: absolute
  /// values may be large where powers are small.
  int MoreFor(int degree, int power, LogOfPower log2_of_power) const;

  const bool is_single_;
  int before_ = 0;
  double norm_, second_ = 0, fourth_ = 0;
  int degree_ = 13;
  int behind_ = 0;
};

}  // namespace tensord::core
