// Elements in device code: how they are stored, and the types that arithmetic
// on them runs in.
//
// Arithmetic runs in one of five types: float, double, std::complex<float>,
// std::complex<double>, and int64_t for all integers, which wraps after every
// step to the integer type that is stored.
#pragma once

#include <cuda_runtime.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/element_type.h"

namespace tensord::core::cuda {

__device__ __forceinline__ float ToFloat(Half x) {
#ifdef __CUDACC__
  return __half2float(__ushort_as_half(x.bits));
#else
  return x.ToFloat();
#endif
}
__device__ __forceinline__ float ToFloat(Bfloat16 x) {
  return std::bit_cast<float>(uint32_t{x.bits} << 16);
}

/// `x` rounded to nearest even.
template <typename T>
__device__ __forceinline__ T HalfFrom(float x) {
#ifdef __CUDACC__
  if constexpr (std::is_same_v<T, Half>) {
    return {__half_as_ushort(__float2half_rn(x))};
  } else {
    return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
  }
#else
  return T::From(x);
#endif
}

/// Whether Convert<To>(From) exists: always, but from complex types to integers
/// other than bool.
template <typename To, typename From>
inline constexpr bool kConverts =
    !kIsComplex<From> || !std::is_integral_v<To> || std::is_same_v<To, bool>;

/// x without its fraction; the nearest integer where it is beyond the range,
/// and 0 of NaN.
template <typename To, typename From>
__device__ __forceinline__ To Truncated(From x) {
  using Limits = std::numeric_limits<To>;
  constexpr To kLowest = Limits::min(), kHighest = Limits::max();
  constexpr From kBeyond = 2 * static_cast<From>(kHighest / 2 + 1);
  if (x != x) return 0;
  if (x < static_cast<From>(kLowest)) return kLowest;
  return x < kBeyond ? static_cast<To>(x) : kHighest;
}

/// x as a float whose last bit says whether it is less than all of x: rounded
/// again, to fewer bits, it gives what x would.
__device__ __forceinline__ float RoundedToOdd(double x) {
  const auto nearest = static_cast<float>(x);
  if (nearest == x) return nearest;
  auto bits = std::bit_cast<uint32_t>(nearest);
  if (fabs(static_cast<double>(nearest)) > fabs(x)) --bits;
  return std::bit_cast<float>(bits | 1);
}

/// Of complex numbers to real types the real part.
template <typename To, typename From>
__device__ __forceinline__ To Convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (kIsHalf<From>) {
    return Convert<To>(ToFloat(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    if constexpr (kIsComplex<From>) {
      return x.real() != 0 || x.imag() != 0;
    } else {
      return x != 0;
    }
  } else if constexpr (kIsComplex<From> && !kIsComplex<To>) {
    return Convert<To>(x.real());
  } else if constexpr (std::is_integral_v<To> &&
                       std::is_floating_point_v<From>) {
    return Truncated<To>(x);
  } else if constexpr (kIsHalf<To> && std::is_same_v<From, double>) {
    return HalfFrom<To>(RoundedToOdd(x));
  } else if constexpr (kIsHalf<To>) {
    return HalfFrom<To>(static_cast<float>(x));
  } else if constexpr (std::is_integral_v<From> && kIsComplex<To>) {
    return To(static_cast<typename To::value_type>(x));
  } else if constexpr (kIsComplex<From>) {
    using Part = typename To::value_type;
    return To(static_cast<Part>(x.real()), static_cast<Part>(x.imag()));
  } else {
    return static_cast<To>(x);
  }
}

/// The element of `type` at `data[offset]`, for arithmetic in T.
template <typename T>
__device__ __forceinline__ T Load(const void* data, ElementType type,
                                  int64_t offset) {
  T result{};
  VisitElementType(type, [&](auto zero) {
    using Stored = decltype(zero);
    if constexpr (std::is_same_v<Stored, bool>) {
      // Any byte but 0 is true; reading it as bool would be undefined.
      result = T(static_cast<const uint8_t*>(data)[offset] != 0 ? 1 : 0);
    } else if constexpr (kConverts<T, Stored>) {
      result = Convert<T>(static_cast<const Stored*>(data)[offset]);
    }
  });
  return result;
}

/// Stores `x` as the element of `type` at `data[offset]`.
template <typename T>
__device__ __forceinline__ void Store(void* data, ElementType type,
                                      int64_t offset, T x) {
  VisitElementType(type, [&](auto zero) {
    using Stored = decltype(zero);
    if constexpr (kConverts<Stored, T>) {
      static_cast<Stored*>(data)[offset] = Convert<Stored>(x);
    }
  });
}

/// What float values are rounded to after each step of arithmetic.
enum class Rounding : uint8_t { kNone, kFloat16, kBfloat16 };

template <typename T>
__device__ __forceinline__ T RoundTo(Rounding rounding, T x) {
  if constexpr (std::is_same_v<T, float>) {
    if (rounding == Rounding::kFloat16) return ToFloat(HalfFrom<Half>(x));
    if (rounding == Rounding::kBfloat16) return ToFloat(HalfFrom<Bfloat16>(x));
  }
  return x;
}

/// How one operation computes, besides its operators.
struct Arithmetic {
  /// The type that integers wrap to.
  ElementType element = ElementType::kFloat32;
  Rounding rounding = Rounding::kNone;

  /// `x` as arithmetic of this kind leaves it: rounded, or wrapped.
  template <typename T>
  __device__ __forceinline__ T Settle(T x) const {
    if constexpr (std::is_integral_v<T>) {
      VisitElementType(element, [&](auto zero) {
        using Stored = decltype(zero);
        if constexpr (std::is_integral_v<Stored>) x = Convert<Stored>(x);
      });
      return x;
    } else {
      return RoundTo(rounding, x);
    }
  }
};

}  // namespace tensord::core::cuda
