#include "core/problem/exponential.h"

#include <algorithm>
#include <cmath>

namespace tensord::core {
namespace {

/// Up to which norm the backward error of a degree is at most the rounding of a
/// number: Higham, The Scaling and Squaring Method for the Matrix Exponential
/// Revisited (2005), table 2.3, and for float32 as in its section 2.
double LargestNormFor(int degree, bool is_single) {
  if (is_single) {
    switch (degree) {
      case 3: return 4.258730016922831e-1;
      case 5: return 1.880152677804762;
      default: return 3.925724783138660;
    }
  }
  switch (degree) {
    case 3: return 1.495585217958292e-2;
    case 5: return 2.539398330063230e-1;
    case 7: return 9.504178996162932e-1;
    case 9: return 2.097847961257068;
    default: return 5.371920351148152;
  }
}

/// Of the first term of the backward error's series: m!^2 / (2 m)! / (2 m + 1)!
double Log2OfFirstTerm(int degree) {
  double log2 = 0;
  for (int k = 2; k <= 2 * degree + 1; ++k) {
    const double own = std::log2(k);
    log2 += (k <= degree ? 2 * own : 0) - (k <= 2 * degree ? own : 0) - own;
  }
  return log2;
}

}  // namespace

std::vector<double> PadeCoefficients(int degree) {
  std::vector<double> coefficients = {1};
  for (int k = 1; k <= degree; ++k) {
    coefficients.push_back(coefficients.back() * (degree - k + 1) /
                           ((2 * degree - k + 1) * static_cast<double>(k)));
  }
  return coefficients;
}

ExponentialChooser::ExponentialChooser(double norm, bool is_single)
    : is_single_(is_single), norm_(norm) {
  const int most = is_single ? 16 : 128;  // so that eighth powers are finite
  if (norm == 0) return;
  // The sum of finite numbers may overflow; they are fewer than 2^63.
  const bool is_finite = std::isfinite(norm);
  const int power = is_finite ? std::ilogb(norm) + 1 : 1024 + 63;
  before_ = std::max(0, power - most);
  norm_ = is_finite ? std::ldexp(norm, -before_) : std::ldexp(1.0, most);
}

bool ExponentialChooser::TakesSquare(double norm, LogOfPower log2_of_power) {
  second_ = norm;
  return Suffices(3, std::sqrt(second_), log2_of_power);
}

bool ExponentialChooser::TakesFourth(double norm, LogOfPower log2_of_power) {
  fourth_ = norm;
  const double sixth = std::pow(second_ * fourth_, 1.0 / 6);  // at most
  return Suffices(5, std::max(std::pow(fourth_, 0.25), sixth), log2_of_power);
}

void ExponentialChooser::TakeSixth(double norm, LogOfPower log2_of_power) {
  const double root4 = std::pow(fourth_, 0.25), root6 = std::pow(norm, 1.0 / 6);
  // Of the eighth and the tenth power the least that is known.
  const double root8 = std::min(root4, std::pow(second_ * norm, 1.0 / 8));
  const double root10 = std::pow(fourth_, 0.1) * std::pow(norm, 0.1);
  const double root = std::max(root6, root8);
  if (Suffices(7, root, log2_of_power)) return;
  if (!is_single_ && Suffices(9, root, log2_of_power)) return;
  degree_ = is_single_ ? 7 : 13;
  const double least =
      is_single_ ? root : std::min(root, std::max(root8, root10));
  const double ratio = least / LargestNormFor(degree_, is_single_);
  const int power =
      ratio > 1 ? static_cast<int>(std::ceil(std::log2(ratio))) : 0;
  behind_ = power + MoreFor(degree_, power, log2_of_power);
}

bool ExponentialChooser::Suffices(int degree, double root,
                                  LogOfPower log2_of_power) {
  if (!(root < LargestNormFor(degree, is_single_)) ||
      MoreFor(degree, 0, log2_of_power) > 0) {
    return false;
  }
  degree_ = degree;
  return true;
}

int ExponentialChooser::MoreFor(int degree, int power,
                                LogOfPower log2_of_power) const {
  if (std::ldexp(norm_, -power) < LargestNormFor(degree, is_single_)) return 0;
  const double log2_of_rounding = is_single_ ? -24 : -53;
  const double excess = Log2OfFirstTerm(degree) +
                        log2_of_power(2 * degree + 1) - std::log2(norm_) -
                        2.0 * degree * power - log2_of_rounding;
  return excess > 0 ? static_cast<int>(std::ceil(excess / (2.0 * degree))) : 0;
}

}  // namespace tensord::core
