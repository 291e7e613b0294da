#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/backend/cpu/block/integer_block.cc"
#include "core/backend/cpu/block/integer_block.h"

#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::core::HWY_NAMESPACE {
namespace {

// Plain loops of fixed length, which compilers turn into vectors of the target;
// 64-bit products have no vector instruction on most.
template <typename T, bool is_bitwise>
HWY_INLINE void Multiply(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b,
                         int64_t n, int64_t k, T* HWY_RESTRICT sum) {
  for (int64_t column = 0; column < n; ++column) {
    T* HWY_RESTRICT const out = sum + column * kIntegerBlockM;
    for (int64_t i = 0; i < k; ++i) {
      const T y = b[column * kIntegerBlockK + i];
      const T* HWY_RESTRICT const x = a + i * kIntegerBlockM;
      for (int64_t row = 0; row < kIntegerBlockM; ++row) {
        if constexpr (is_bitwise) {
          out[row] |= x[row] & y;
        } else {
          out[row] += x[row] * y;
        }
      }
    }
  }
}

void Multiply32(const uint32_t* a, const uint32_t* b, int64_t n, int64_t k,
                uint32_t* sum) {
  Multiply<uint32_t, false>(a, b, n, k, sum);
}
void Multiply64(const uint64_t* a, const uint64_t* b, int64_t n, int64_t k,
                uint64_t* sum) {
  Multiply<uint64_t, false>(a, b, n, k, sum);
}
void AndOr32(const uint32_t* a, const uint32_t* b, int64_t n, int64_t k,
             uint32_t* sum) {
  Multiply<uint32_t, true>(a, b, n, k, sum);
}

}  // namespace
}  // namespace tensord::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::core {

HWY_EXPORT(Multiply32);
HWY_EXPORT(Multiply64);
HWY_EXPORT(AndOr32);

void MultiplyIntegerBlock(const uint32_t* a, const uint32_t* b, int64_t n,
                          int64_t k, uint32_t* sum) {
  HWY_DYNAMIC_DISPATCH(Multiply32)(a, b, n, k, sum);
}
void MultiplyIntegerBlock(const uint64_t* a, const uint64_t* b, int64_t n,
                          int64_t k, uint64_t* sum) {
  HWY_DYNAMIC_DISPATCH(Multiply64)(a, b, n, k, sum);
}
void AndOrBlock(const uint32_t* a, const uint32_t* b, int64_t n, int64_t k,
                uint32_t* sum) {
  HWY_DYNAMIC_DISPATCH(AndOr32)(a, b, n, k, sum);
}

}  // namespace tensord::core
#endif
