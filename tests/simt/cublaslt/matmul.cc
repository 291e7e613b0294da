#include "tests/simt/cublaslt/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace tensord::simt {
namespace {

using Complex = std::complex<double>;

/// A binary floating-point format.
struct Format {
  int fraction_bits;
  int least_exponent;  // of normal numbers
  double largest;
};
constexpr Format kHalf{10, -14, 65504};
constexpr Format kBrain{7, -126, 0x1.fep127};
constexpr Format kTf32{10, -126, 0x1.ffcp127};

/// To nearest, ties to even; beyond the largest an infinity.
double RoundTo(double x, const Format& format) {
  if (!std::isfinite(x) || x == 0) return x;
  const int exponent = std::max(std::ilogb(x), format.least_exponent);
  const int scale = format.fraction_bits - exponent;
  const double rounded =
      std::ldexp(std::nearbyint(std::ldexp(x, scale)), -scale);
  return std::abs(rounded) > format.largest
             ? std::copysign(std::numeric_limits<double>::infinity(), x)
             : rounded;
}

template <typename T>
T Read(const void* memory, int64_t index) {
  T value;
  std::memcpy(&value,
              static_cast<const char*>(memory) +
                  index * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

template <typename T>
void Write(void* memory, int64_t index, const T& value) {
  std::memcpy(
      static_cast<char*>(memory) + index * static_cast<int64_t>(sizeof(T)),
      &value, sizeof(T));
}

double HalfToDouble(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double magnitude = std::ldexp(fraction, -24);
  if (exponent == 31) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent > 0) {
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

uint16_t DoubleToHalf(double x) {
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  if (std::isnan(x)) return sign | 0x7e00;
  const double magnitude = std::abs(RoundTo(x, kHalf));
  if (std::isinf(magnitude)) return sign | 0x7c00;
  if (magnitude < 0x1p-14) {
    return static_cast<uint16_t>(sign | static_cast<int>(magnitude * 0x1p24));
  }
  const int exponent = std::ilogb(magnitude);
  const int fraction =
      static_cast<int>(std::ldexp(magnitude, 10 - exponent)) - 1024;
  return static_cast<uint16_t>(sign | (exponent + 15) << 10 | fraction);
}

float BrainToFloat(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

uint16_t DoubleToBrain(double x) {
  const auto rounded = static_cast<float>(RoundTo(x, kBrain));
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  return static_cast<uint16_t>(bits >> 16);
}

Complex Load(const void* memory, cudaDataType_t type, int64_t index) {
  switch (type) {
    case CUDA_R_16F: return HalfToDouble(Read<uint16_t>(memory, index));
    case CUDA_R_16BF: return BrainToFloat(Read<uint16_t>(memory, index));
    case CUDA_R_32F: return Read<float>(memory, index);
    case CUDA_R_64F: return Read<double>(memory, index);
    case CUDA_C_32F: return Read<std::complex<float>>(memory, index);
    case CUDA_C_64F: return Read<Complex>(memory, index);
  }
  return 0;
}

void Store(void* memory, cudaDataType_t type, int64_t index,
           const Complex& value) {
  switch (type) {
    case CUDA_R_16F: Write(memory, index, DoubleToHalf(value.real())); break;
    case CUDA_R_16BF: Write(memory, index, DoubleToBrain(value.real())); break;
    case CUDA_R_32F:
      Write(memory, index, static_cast<float>(value.real()));
      break;
    case CUDA_R_64F: Write(memory, index, value.real()); break;
    case CUDA_C_32F:
      Write(memory, index, static_cast<std::complex<float>>(value));
      break;
    case CUDA_C_64F: Write(memory, index, value); break;
  }
}

Complex RoundedTo(const Complex& x, cublasComputeType_t compute) {
  const auto round = [&](const Format& format) {
    return Complex(RoundTo(x.real(), format), RoundTo(x.imag(), format));
  };
  switch (compute) {
    case CUBLAS_COMPUTE_32F_FAST_16F: return round(kHalf);
    case CUBLAS_COMPUTE_32F_FAST_16BF: return round(kBrain);
    case CUBLAS_COMPUTE_32F_FAST_TF32: return round(kTf32);
    default: return x;
  }
}

/// The product as it is defined; C++ would mend NaNs.
Complex Times(const Complex& x, const Complex& y) {
  return {x.real() * y.real() - x.imag() * y.imag(),
          x.real() * y.imag() + x.imag() * y.real()};
}

Complex Product(const Complex& x, const Complex& y, bool is_complex) {
  return is_complex ? Times(x, y) : Complex(x.real() * y.real());
}

/// Element (row, column) of op(matrix).
Complex Element(const void* memory, const MatmulMatrix& layout,
                cublasOperation_t op, int64_t row, int64_t column,
                int64_t batch) {
  if (op != CUBLAS_OP_N) std::swap(row, column);
  const Complex stored =
      Load(memory, layout.type,
           row + column * layout.ld + batch * layout.batch_stride);
  return op == CUBLAS_OP_C ? std::conj(stored) : stored;
}

/// What is multiplied: op(matrix) of a batch, row by row.
std::vector<Complex> Factors(const void* memory, const MatmulMatrix& layout,
                             cublasOperation_t op, int64_t batch,
                             cublasComputeType_t compute) {
  const int64_t rows = op == CUBLAS_OP_N ? layout.rows : layout.cols;
  const int64_t columns = op == CUBLAS_OP_N ? layout.cols : layout.rows;
  std::vector<Complex> factors;
  factors.reserve(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      factors.push_back(
          RoundedTo(Element(memory, layout, op, row, column, batch), compute));
    }
  }
  return factors;
}

}  // namespace

int64_t BytesOf(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_16F:
    case CUDA_R_16BF: return 2;
    case CUDA_R_32F: return 4;
    case CUDA_R_64F:
    case CUDA_C_32F: return 8;
    case CUDA_C_64F: return 16;
  }
  return 1;
}

bool IsComplexType(cudaDataType_t type) {
  return type == CUDA_C_32F || type == CUDA_C_64F;
}

void Run(const Matmul& call) {
  const bool is_complex = IsComplexType(call.layout_d.type);
  const MatmulMatrix& d = call.layout_d;
  for (int64_t batch = 0; batch < d.batch_count; ++batch) {
    const auto a =
        Factors(call.a, call.layout_a, call.op_a, batch, call.compute);
    const auto b =
        Factors(call.b, call.layout_b, call.op_b, batch, call.compute);
    const auto rows = static_cast<size_t>(d.rows);
    const auto columns = static_cast<size_t>(d.cols);
    const size_t terms = a.size() / rows;
    for (size_t column = 0; column < columns; ++column) {
      for (size_t row = 0; row < rows; ++row) {
        Complex sum = 0;
        for (size_t k = 0; k < terms; ++k) {
          sum +=
              Product(a[row * terms + k], b[k * columns + column], is_complex);
        }
        if (call.alpha != 1.0) sum = Product(call.alpha, sum, is_complex);
        const auto i = static_cast<int64_t>(row);
        const auto j = static_cast<int64_t>(column);
        if (call.beta != 0.0) {
          const Complex c =
              Element(call.c, call.layout_c, CUBLAS_OP_N, i, j, batch);
          sum += call.beta == 1.0 ? c : Product(call.beta, c, is_complex);
        }
        Store(call.d, d.type, i + j * d.ld + batch * d.batch_stride, sum);
      }
    }
  }
}

}  // namespace tensord::simt
