// int64 arithmetic that reports overflow instead of wrapping.
#pragma once

#include <cstdint>
#include <optional>

namespace tensord::core {

/// x + y, or nothing when the sum does not fit.
inline std::optional<int64_t> CheckedAdd(int64_t x, int64_t y) {
  int64_t sum;
  if (__builtin_add_overflow(x, y, &sum)) return std::nullopt;
  return sum;
}

/// x * y, or nothing when the product does not fit.
inline std::optional<int64_t> CheckedMultiply(int64_t x, int64_t y) {
  int64_t product;
  if (__builtin_mul_overflow(x, y, &product)) return std::nullopt;
  return product;
}

/// x + y or x * y, and INT64_MAX when that does not fit.
/// Requires x >= 0, y >= 0.
inline int64_t SaturatingAdd(int64_t x, int64_t y) {
  return CheckedAdd(x, y).value_or(INT64_MAX);
}
inline int64_t SaturatingMultiply(int64_t x, int64_t y) {
  return CheckedMultiply(x, y).value_or(INT64_MAX);
}

/// x / y, rounded up.
/// Requires y > 0, x >= 0.
constexpr int64_t CeilDivide(int64_t x, int64_t y) {
  return x / y + (x % y != 0 ? 1 : 0);
}

/// The smallest multiple of `alignment` that is >= x.
/// Requires alignment > 0, x >= 0 and a result that fits.
constexpr int64_t RoundUp(int64_t x, int64_t alignment) {
  return (x + alignment - 1) / alignment * alignment;
}

}  // namespace tensord::core
