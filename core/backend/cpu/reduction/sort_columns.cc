#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/backend/cpu/reduction/sort_columns.cc"
#include "core/backend/cpu/reduction/sort_columns.h"

#include <bit>

#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::core::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Puts the lower of two rows' elements first, column by column.
HWY_INLINE void Exchange(uint64_t* keys, uint64_t* indices, int64_t low,
                         int64_t high, int64_t width) {
  const hn::ScalableTag<uint64_t> d;
  static_assert(hn::MaxLanes(d) <= kColumns);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < width; i += lanes) {
    uint64_t* const x_key = keys + low * kColumns + i;
    uint64_t* const y_key = keys + high * kColumns + i;
    uint64_t* const x_index = indices + low * kColumns + i;
    uint64_t* const y_index = indices + high * kColumns + i;
    const auto x = hn::LoadU(d, x_key), y = hn::LoadU(d, y_key);
    const auto at_x = hn::LoadU(d, x_index), at_y = hn::LoadU(d, y_index);
    const auto swaps =
        hn::Or(hn::Lt(y, x), hn::And(hn::Eq(x, y), hn::Lt(at_y, at_x)));
    hn::StoreU(hn::IfThenElse(swaps, y, x), d, x_key);
    hn::StoreU(hn::IfThenElse(swaps, x, y), d, y_key);
    hn::StoreU(hn::IfThenElse(swaps, at_y, at_x), d, x_index);
    hn::StoreU(hn::IfThenElse(swaps, at_x, at_y), d, y_index);
  }
}

/// By a network, the same for all columns.
/// Source  D. Knuth, "The art of computer programming" 3, 5.2.2, algorithm M:
///         Batcher's merge exchange.
void Sort(uint64_t* keys, uint64_t* indices, int64_t count, int64_t width) {
  const auto half =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)) / 2);
  for (int64_t p = half; p > 0; p /= 2) {
    int64_t distance = p, rest = 0;
    for (int64_t q = half; q >= p; q /= 2) {
      for (int64_t i = 0; i + distance < count; ++i) {
        if ((i & p) == rest) Exchange(keys, indices, i, i + distance, width);
      }
      distance = q - p;
      rest = p;
    }
  }
}

}  // namespace
}  // namespace tensord::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::core {
namespace {
HWY_EXPORT(Sort);
}  // namespace

void SortColumns(uint64_t* keys, uint64_t* indices, int64_t count,
                 int64_t width) {
  HWY_DYNAMIC_DISPATCH(Sort)(keys, indices, count, width);
}

}  // namespace tensord::core
#endif  // HWY_ONCE
