// How far a correct kernel may be from the exact result.
//
// Model. An operation in precision u gives fl(x op y) = (x op y)(1 + e), |e| <=
// u, while the result is in range, and an absolute error of one smallest number
// below it. The oracle computes exactly enough (64 bits of significand) and
// carries next to each value the sum of all errors that the model allows, so a
// bound is always that of the data at hand:
//
//   x rounded on reading           u_read |x|
//   x * y                          |x| e_y + |y| e_x + e_x e_y + u |x y|
//   x + y                          e_x + e_y + u |x + y|
//   max(x, y), min(x, y)           max(e_x, e_y): both are 1-Lipschitz
//   f(x), x exact                  r u |f(x)|: r roundings, by operator
//   sum of n terms, depth h        sum of e_i + h u / (1 - h u) * sum of |x_i|
//   rounded to d's element type    u_d |x|
//
// A term passes at most h additions on its way into the sum. A contraction may
// add in any order: h = n. A reduction promises a tree: h = log2 n + the
// longest run that a leaf may add in order.
//
// Complex numbers are judged by modulus. A complex product takes up to four
// roundings (Brent, Percival, Zimmermann: sqrt(5) u; the three-product scheme
// more), hence its unit is 4 u.
#pragma once

#include <cmath>

#include "core/base/element_type.h"
#include "tests/testing/oracle/number.h"

namespace tensord::test {

/// An exact value and how far from it a correct kernel may be.
struct Estimate {
  Number value;
  Real error = 0;
};

/// What one operation rounds, and how.
struct Rounding {
  FloatFormat read;    // inputs a and b
  FloatFormat sum;     // products and additions inside a sum
  FloatFormat result;  // everything else, c included
  bool is_complex = false;
  /// Numbers of the inputs that are read as they are.
  FloatFormat exact = read;
  /// Of the additions of a sum, those for one product.
  int64_t additions = 1;

  /// How operations in `compute_type` round. `is_contraction` tells the
  /// products of operands that are rounded to the compute type from
  /// element-wise arithmetic in it.
  static Rounding Of(core::ComputeType compute_type, bool is_complex,
                     bool is_contraction);

  /// The same where tensor cores multiply and add: they cut off what their
  /// formats do not hold, of float32 operands and after each addition.
  /// Source  M. Fasi, N. Higham, M. Mikaitis, S. Pranesh, "Numerical behavior
  ///         of NVIDIA tensor cores" (2021), sections 3 and 4.
  Rounding OnTensorCores() const;
};

/// |x|. Squares of what elements hold are in Real's range.
inline Real Modulus(const Number& x) {
  if (x.imag() == 0) return std::abs(x.real());
  if (std::isinf(x.real()) || std::isinf(x.imag())) return std::abs(x);
  return std::sqrt(x.real() * x.real() + x.imag() * x.imag());
}

/// The product in exact arithmetic; imaginary parts count only when complex.
Number Product(const Number& x, const Number& y, bool is_complex);

/// `x` as arithmetic in `format` sees it: rounded, unless it is a number of
/// that format.
Estimate Read(const Number& x, const FloatFormat& format);
/// `x` as an input a or b.
Estimate ReadFactor(const Number& x, const Rounding& rounding);

/// `x` after `roundings` roundings to `format`. A value that may exceed the
/// largest number gets an infinite error: an overflow on the way excuses any
/// result.
Estimate Rounded(Estimate x, Real roundings, const FloatFormat& format);

/// Error of the exact product of both. What may overflow stays so; an infinity
/// times what is not 0 is one, however that is rounded.
Real ProductError(const Estimate& x, const Estimate& y);
Estimate Multiply(const Estimate& x, const Estimate& y,
                  const Rounding& rounding);
Estimate Add(const Estimate& x, const Estimate& y, const Rounding& rounding);

/// Error of adding terms whose moduli sum to `magnitude`, each of which passes
/// at most `depth` additions.
Real SummationError(int64_t depth, Real magnitude, const FloatFormat& format);

/// Most additions that a term of a reduction of `count` elements may pass.
int64_t TreeDepth(int64_t count);

/// The same of a cumulative one, which goes by levels of 64 parts in order:
/// what comes before a part is what the one before ends with.
int64_t ScanDepth(int64_t count);

/// True when `actual`, read from an element of `type`, is what a correct kernel
/// may store for `expected`: within its error and one rounding to `type`; an
/// infinity of the right sign when the value may round beyond the range of
/// `type`; NaN for NaN. Of complex numbers that are not finite only that is
/// compared, since C++ and C disagree about the parts.
bool Agrees(const Number& actual, const Estimate& expected,
            core::ElementType type);

/// Error of `actual` in units of what is allowed; 0 where either is not finite.
Real ErrorRatio(const Number& actual, const Estimate& expected,
                core::ElementType type);

}  // namespace tensord::test
