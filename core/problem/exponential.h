// How an exponential of a matrix is approximated, on any device.
#pragma once

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

/// Chooses by norms of the first powers of a matrix, as they are computed: the
/// backward error is at most the rounding of a number. Norms are the largest
/// sum of absolute values of a column. See Al-Mohy and Higham, A New Scaling
/// and Squaring Algorithm for the Matrix Exponential (2009), algorithm 5.1.
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
