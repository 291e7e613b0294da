// Loops that are written out, in code that is compiled for each SIMD target.
// Sources that hwy/foreach_target.h compiles for each target include it after
// hwy/highway.h, and so anew for each target.
#if defined(TENSORD_UNROLL_INCLUDED) == defined(HWY_TARGET_TOGGLE)
#ifdef HWY_TARGET_TOGGLE
#undef TENSORD_UNROLL_INCLUDED
#else
#define TENSORD_UNROLL_INCLUDED
#endif

#include <cstddef>
#include <utility>

#include "hwy/highway.h"

// What HWY_INLINE is for functions, for the lambdas that Unroll() calls.
#undef TENSORD_UNROLLED
#define TENSORD_UNROLLED HWY_ATTR __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace tensord::core::HWY_NAMESPACE {

template <class Body, size_t... i>
HWY_INLINE void UnrollOver(Body body, std::index_sequence<i...>) {
  (body(std::integral_constant<size_t, i>()), ...);
}

/// Calls body(integral_constant) for 0 .. count - 1, without a loop, so that
/// arrays of vectors stay in registers.
template <size_t count, class Body>
HWY_INLINE void Unroll(Body body) {
  UnrollOver(body, std::make_index_sequence<count>());
}

}  // namespace tensord::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once a target
