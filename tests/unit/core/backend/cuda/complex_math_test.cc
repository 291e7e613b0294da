#include "core/backend/cuda/kernel/complex_math.cuh"

#include <gtest/gtest.h>

#include <complex>
#include <limits>

namespace tensord::core::cuda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// That no infinity met a zero on the way: NaN would have come out.
TEST(ComplexMathTest, RealArgumentsOverflowToRealResults) {
  EXPECT_EQ(Sinh(Complex<float>(1000, 0)), Complex<float>(kInfinity, 0));
  EXPECT_EQ(Sinh(Complex<float>(-1000, 0)), Complex<float>(-kInfinity, 0));
  EXPECT_EQ(Cosh(Complex<float>(-1000, 0)), Complex<float>(kInfinity, 0));
  EXPECT_EQ(Exp(Complex<float>(1000, 0)), Complex<float>(kInfinity, 0));
}

TEST(ComplexMathTest, SquareRootsOfInfinitiesAreInfinite) {
  EXPECT_EQ(Sqrt(Complex<float>(1, kInfinity)),
            Complex<float>(kInfinity, kInfinity));
  EXPECT_EQ(Sqrt(Complex<float>(-kInfinity, -kInfinity)),
            Complex<float>(kInfinity, -kInfinity));
}

TEST(ComplexMathTest, SquareRootsNeitherOverflowNorLoseDenormals) {
  constexpr float kDenormal = std::numeric_limits<float>::denorm_min();
  for (const Complex<float> z :
       {Complex<float>(3e38f, 3e38f), Complex<float>(-3e38f, 3e38f),
        Complex<float>(kDenormal, 0), Complex<float>(0, -3 * kDenormal),
        Complex<float>(-kDenormal, kDenormal)}) {
    const Complex<float> root = Sqrt(z);
    const std::complex<double> exact = std::sqrt(std::complex<double>(z));
    EXPECT_NEAR(root.real(), exact.real(), 4e-7 * std::abs(exact)) << z;
    EXPECT_NEAR(root.imag(), exact.imag(), 4e-7 * std::abs(exact)) << z;
  }
}

TEST(ComplexMathTest, BranchCutsFollowTheSignOfZero) {
  EXPECT_EQ(Sqrt(Complex<float>(-4, 0.0f)), Complex<float>(0, 2));
  EXPECT_EQ(Sqrt(Complex<float>(-4, -0.0f)), Complex<float>(0, -2));
}

}  // namespace
}  // namespace tensord::core::cuda
