// Elementary functions of complex numbers for device code.
//
// The inverse functions follow W. Kahan, "Branch cuts for complex elementary
// functions" (1987): square roots of sums, never of products, so that neither
// cancellation nor the choice of branch spoils a part.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <complex>

namespace tensord::core::cuda {

template <typename R>
using Complex = std::complex<R>;

template <typename R>
__device__ Complex<R> Product(Complex<R> z, Complex<R> w) {
  return {z.real() * w.real() - z.imag() * w.imag(),
          z.real() * w.imag() + z.imag() * w.real()};
}

/// -i z and i z.
template <typename R>
__device__ Complex<R> TimesMinusI(Complex<R> z) {
  return {z.imag(), -z.real()};
}
template <typename R>
__device__ Complex<R> TimesI(Complex<R> z) {
  return {-z.imag(), z.real()};
}

/// 1 / z by R. L. Smith's way, which squares nothing.
template <typename R>
__device__ Complex<R> Reciprocal(Complex<R> z) {
  const R x = z.real(), y = z.imag();
  if (fabs(x) >= fabs(y)) {
    const R ratio = y / x, scale = R(1) / (x + y * ratio);
    return {scale, -ratio * scale};
  }
  const R ratio = x / y, scale = R(1) / (x * ratio + y);
  return {ratio * scale, -scale};
}

/// z / w the same way; of a w of 0 infinite in what is not 0 of z.
template <typename R>
__device__ Complex<R> Divided(Complex<R> z, Complex<R> w) {
  const R x = w.real(), y = w.imag();
  if (x == 0 && y == 0) return {z.real() / x, z.imag() / x};
  if (fabs(x) >= fabs(y)) {
    const R ratio = y / x, divisor = x + y * ratio;
    return {(z.real() + z.imag() * ratio) / divisor,
            (z.imag() - z.real() * ratio) / divisor};
  }
  const R ratio = x / y, divisor = x * ratio + y;
  return {(z.real() * ratio + z.imag()) / divisor,
          (z.imag() * ratio - z.real()) / divisor};
}

template <typename R>
__device__ Complex<R> Sqrt(Complex<R> z) {
  const R x = z.real(), y = z.imag();
  if (x == 0 && y == 0) return {R(0), y};
  if (isinf(y)) return {fabs(y), y};
  // Scaled by a power of 4, so that neither does the sum overflow nor are bits
  // of denormal parts lost.
  const bool is_big = fmax(fabs(x), fabs(y)) > 1;
  const R scale = is_big ? R(0x1p-4) : R(0x1p54);
  const R unscale = is_big ? R(0x1p2) : R(0x1p-27);
  const R modulus = hypot(x * scale, y * scale);
  const R large = unscale * sqrt((fabs(x) * scale + modulus) / 2);
  const R small = fabs(y) / (2 * large);
  if (x >= 0) return {large, copysign(small, y)};
  return {small, copysign(large, y)};
}

template <typename R>
__device__ Complex<R> Exp(Complex<R> z) {
  const R scale = exp(z.real());
  if (z.imag() == 0) return {scale, z.imag()};
  return {scale * cos(z.imag()), scale * sin(z.imag())};
}

template <typename R>
__device__ Complex<R> Log(Complex<R> z) {
  const R x = fabs(z.real()), y = fabs(z.imag());
  const R modulus = hypot(x, y);
  const R angle = atan2(z.imag(), z.real());
  if (modulus > R(0.5) && modulus < R(2)) {
    const R large = fmax(x, y), small = fmin(x, y);
    return {log1p((large - 1) * (large + 1) + small * small) / 2, angle};
  }
  return {log(modulus), angle};
}

template <typename R>
__device__ Complex<R> Power(Complex<R> z, Complex<R> w) {
  if (w.real() == 0 && w.imag() == 0) return {R(1), R(0)};
  const bool is_zero = z.real() == 0 && z.imag() == 0;
  if (is_zero && w.real() > 0 && w.imag() == 0) return {R(0), R(0)};
  return Exp(Product(w, Log(z)));
}

template <typename R>
__device__ Complex<R> Sinh(Complex<R> z) {
  if (z.imag() == 0) return {sinh(z.real()), z.imag()};
  return {sinh(z.real()) * cos(z.imag()), cosh(z.real()) * sin(z.imag())};
}

template <typename R>
__device__ Complex<R> Cosh(Complex<R> z) {
  if (z.imag() == 0)
    return {cosh(z.real()), z.imag() * copysign(R(1), z.real())};
  return {cosh(z.real()) * cos(z.imag()), sinh(z.real()) * sin(z.imag())};
}

template <typename R>
__device__ Complex<R> Tanh(Complex<R> z) {
  const R x = z.real(), y = z.imag();
  // Where tanh(x) is 1 to the last bit of a double.
  if (fabs(x) > R(22)) {
    return {copysign(R(1), x), 4 * sin(y) * cos(y) * exp(-2 * fabs(x))};
  }
  const R tangent = tan(y), s = sinh(x);
  const R secant_squared = 1 + tangent * tangent;
  const R divisor = 1 + secant_squared * s * s;
  return {secant_squared * sqrt(1 + s * s) * s / divisor, tangent / divisor};
}

template <typename R>
__device__ Complex<R> Asin(Complex<R> z) {
  const Complex<R> below = Sqrt(Complex<R>(1 - z.real(), -z.imag()));
  const Complex<R> above = Sqrt(Complex<R>(1 + z.real(), z.imag()));
  const Complex<R> conjugate(below.real(), -below.imag());
  return {atan2(z.real(), Product(below, above).real()),
          asinh(Product(conjugate, above).imag())};
}

template <typename R>
__device__ Complex<R> Acos(Complex<R> z) {
  const Complex<R> below = Sqrt(Complex<R>(1 - z.real(), -z.imag()));
  const Complex<R> above = Sqrt(Complex<R>(1 + z.real(), z.imag()));
  const Complex<R> conjugate(above.real(), -above.imag());
  return {2 * atan2(below.real(), above.real()),
          asinh(Product(conjugate, below).imag())};
}

template <typename R>
__device__ Complex<R> Acosh(Complex<R> z) {
  const Complex<R> below = Sqrt(Complex<R>(z.real() - 1, z.imag()));
  const Complex<R> above = Sqrt(Complex<R>(z.real() + 1, z.imag()));
  const Complex<R> conjugate(below.real(), -below.imag());
  return {asinh(Product(conjugate, above).real()),
          2 * atan2(below.imag(), above.real())};
}

template <typename R>
__device__ Complex<R> Atanh(Complex<R> z) {
  // Odd, and of a positive real part nothing cancels in the logarithm.
  const R x = fabs(z.real()), y = z.imag();
  const R distance = (1 - x) * (1 - x) + y * y;  // from 1, squared
  return {copysign(log1p(4 * x / distance) / 4, z.real()),
          atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2};
}

}  // namespace tensord::core::cuda
