// Products of small blocks of integers.
#pragma once

#include <cstdint>

namespace tensord::core {

inline constexpr int64_t kIntegerBlockM = 128;
inline constexpr int64_t kIntegerBlockN = 32;
inline constexpr int64_t kIntegerBlockK = 64;

/// sum (kIntegerBlockM, n) += a (kIntegerBlockM, k) * b (k, n), wrapping.
///
/// a and sum lie by columns of kIntegerBlockM, b by columns of kIntegerBlockK.
/// Requires  n <= kIntegerBlockN, k <= kIntegerBlockK.
void MultiplyIntegerBlock(const uint32_t* a, const uint32_t* b, int64_t n,
                          int64_t k, uint32_t* sum);
void MultiplyIntegerBlock(const uint64_t* a, const uint64_t* b, int64_t n,
                          int64_t k, uint64_t* sum);

/// Likewise with `and` for the product and `or` for the sum, bit by bit.
void AndOrBlock(const uint32_t* a, const uint32_t* b, int64_t n, int64_t k,
                uint32_t* sum);

}  // namespace tensord::core
