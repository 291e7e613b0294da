// CUDA's arithmetic functions that C++ does not have.
#pragma once

#include <math.h>  // NOLINT: CUDA's functions are in the global namespace too.

#include <bit>
#include <cstdint>

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) {
  return std::countl_zero(static_cast<unsigned long long>(x));
}
/// The place of the lowest bit set, from 1; 0 when there is none.
inline int __ffs(int x) { return __builtin_ffs(x); }

inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((uint64_t{a} * b) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a,
                                     unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>((Wide{a} * b) >> 64);
}

/// The lower word of `high`:`low`, shifted right by the lowest five bits.
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) >> (shift & 31));
}

inline unsigned __brev(unsigned x) {
  x = (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
  x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
  x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
  return __builtin_bswap32(x);
}

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) {
  return std::bit_cast<long long>(x);
}
inline double __longlong_as_double(long long x) {
  return std::bit_cast<double>(x);
}

inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }

#define TENSORD_SIMT_MIN_MAX(Result, A, B)                               \
  inline Result min(A a, B b) {                                          \
    const Result x = static_cast<Result>(a), y = static_cast<Result>(b); \
    return y < x ? y : x;                                                \
  }                                                                      \
  inline Result max(A a, B b) {                                          \
    const Result x = static_cast<Result>(a), y = static_cast<Result>(b); \
    return x < y ? y : x;                                                \
  }
// Of a number and a NaN, CUDA's take the number.
#define TENSORD_SIMT_FLOAT_MIN_MAX(Result, A, B)      \
  inline Result min(A a, B b) {                       \
    return static_cast<Result>(__builtin_fmin(a, b)); \
  }                                                   \
  inline Result max(A a, B b) {                       \
    return static_cast<Result>(__builtin_fmax(a, b)); \
  }
TENSORD_SIMT_MIN_MAX(int, int, int)
TENSORD_SIMT_MIN_MAX(unsigned, unsigned, unsigned)
TENSORD_SIMT_MIN_MAX(unsigned, int, unsigned)
TENSORD_SIMT_MIN_MAX(unsigned, unsigned, int)
TENSORD_SIMT_MIN_MAX(long, long, long)
TENSORD_SIMT_MIN_MAX(unsigned long, unsigned long, unsigned long)
TENSORD_SIMT_MIN_MAX(unsigned long, long, unsigned long)
TENSORD_SIMT_MIN_MAX(unsigned long, unsigned long, long)
TENSORD_SIMT_MIN_MAX(long long, long long, long long)
TENSORD_SIMT_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
TENSORD_SIMT_MIN_MAX(unsigned long long, long long, unsigned long long)
TENSORD_SIMT_MIN_MAX(unsigned long long, unsigned long long, long long)
TENSORD_SIMT_FLOAT_MIN_MAX(float, float, float)
TENSORD_SIMT_FLOAT_MIN_MAX(double, double, double)
TENSORD_SIMT_FLOAT_MIN_MAX(double, float, double)
TENSORD_SIMT_FLOAT_MIN_MAX(double, double, float)
#undef TENSORD_SIMT_FLOAT_MIN_MAX
#undef TENSORD_SIMT_MIN_MAX
