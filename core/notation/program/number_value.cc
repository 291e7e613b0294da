#include "core/notation/program/number_value.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <variant>

namespace tensord::core {
namespace {

using Complex = std::complex<double>;

Complex ComplexOf(const Scalar& x) { return {x.real, x.imaginary}; }

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// log(1 + exp(x)).
double SoftPlus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

/// What real and complex numbers have alike.
template <typename T>
T Analytic(UnaryOperator op, T x) {
  switch (op) {
    case UnaryOperator::kSqrt: return std::sqrt(x);
    case UnaryOperator::kTanh: return std::tanh(x);
    case UnaryOperator::kExp: return std::exp(x);
    case UnaryOperator::kLog: return std::log(x);
    case UnaryOperator::kAbs: return std::abs(x);
    case UnaryOperator::kSin: return std::sin(x);
    case UnaryOperator::kCos: return std::cos(x);
    case UnaryOperator::kTan: return std::tan(x);
    case UnaryOperator::kSinh: return std::sinh(x);
    case UnaryOperator::kCosh: return std::cosh(x);
    case UnaryOperator::kAsin: return std::asin(x);
    case UnaryOperator::kAcos: return std::acos(x);
    case UnaryOperator::kAtan: return std::atan(x);
    case UnaryOperator::kAsinh: return std::asinh(x);
    case UnaryOperator::kAcosh: return std::acosh(x);
    case UnaryOperator::kAtanh: return std::atanh(x);
    case UnaryOperator::kReal: return std::real(x);
    case UnaryOperator::kImag: return std::imag(x);
    default: return x;
  }
}

double Ordered(UnaryOperator op, double x) {
  switch (op) {
    case UnaryOperator::kRelu: return x < 0 ? 0 : x;
    case UnaryOperator::kSigmoid: return Logistic(x);
    case UnaryOperator::kCeil: return std::ceil(x);
    case UnaryOperator::kFloor: return std::floor(x);
    case UnaryOperator::kMish: return x * std::tanh(SoftPlus(x));
    case UnaryOperator::kSwish: return x * Logistic(x);
    case UnaryOperator::kSoftPlus: return SoftPlus(x);
    case UnaryOperator::kSoftSign: return x / (1 + std::abs(x));
    default: return Analytic(op, x);
  }
}

Scalar ValueOf(UnaryOperator op, const Scalar& x) {
  if (x.imaginary == 0) return {Ordered(op, x.real), 0};
  const Complex value = Analytic(op, ComplexOf(x));
  return {value.real(), value.imag()};
}

Scalar Power(const Scalar& x, const Scalar& y) {
  if (x.imaginary == 0 && y.imaginary == 0) {
    return {std::pow(x.real, y.real), 0};
  }
  const Complex value = std::pow(ComplexOf(x), ComplexOf(y));
  return {value.real(), value.imag()};
}

Scalar Truth(bool is_true) { return {is_true ? 1.0 : 0.0, 0}; }

}  // namespace

Scalar ValueOf(const ElementFunction& function, absl::Span<const Scalar> x) {
  if (const auto* const op = std::get_if<UnaryOperator>(&function)) {
    return ValueOf(*op, x[0]);
  }
  const auto nan_or = [&](double value) -> Scalar {
    const bool is_nan = std::isnan(x[0].real) || std::isnan(x[1].real);
    return {is_nan ? std::nan("") : value, 0};
  };
  switch (std::get<BinaryOperator>(function)) {
    case BinaryOperator::kMax: return nan_or(std::fmax(x[0].real, x[1].real));
    case BinaryOperator::kMin: return nan_or(std::fmin(x[0].real, x[1].real));
    case BinaryOperator::kPow: return Power(x[0], x[1]);
    case BinaryOperator::kEqual: return Truth(x[0] == x[1]);
    case BinaryOperator::kNotEqual: return Truth(x[0] != x[1]);
    case BinaryOperator::kLess: return Truth(x[0].real < x[1].real);
    case BinaryOperator::kLessEqual: return Truth(x[0].real <= x[1].real);
    case BinaryOperator::kGreater: return Truth(x[0].real > x[1].real);
    case BinaryOperator::kGreaterEqual: return Truth(x[0].real >= x[1].real);
    case BinaryOperator::kWhere: return x[0].IsZero() ? x[2] : x[1];
    default: return kZero;
  }
}

}  // namespace tensord::core
