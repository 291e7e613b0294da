#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/backend/cpu/block/block_simd.cc"
#include "core/backend/cpu/block/block_simd.h"

#include <cstddef>
#include <limits>

#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// Which blocks there are.
#define TENSORD_FLOATS(define, name) define(name, float) define(name, double)
#define TENSORD_UNARY_BLOCKS          \
  TENSORD_FLOATS(TENSORD_UNARY, Sqrt) \
  TENSORD_FLOATS(TENSORD_UNARY, Rcp)  \
  TENSORD_FLOATS(TENSORD_UNARY, Relu) \
  TENSORD_FLOATS(TENSORD_UNARY, Abs)  \
  TENSORD_FLOATS(TENSORD_UNARY, Neg)  \
  TENSORD_FLOATS(TENSORD_UNARY, Ceil) \
  TENSORD_FLOATS(TENSORD_UNARY, Floor)
#define TENSORD_BINARY_BLOCKS                  \
  TENSORD_FLOATS(TENSORD_BINARY, Add)          \
  TENSORD_FLOATS(TENSORD_BINARY, Mul)          \
  TENSORD_FLOATS(TENSORD_BINARY, Max)          \
  TENSORD_FLOATS(TENSORD_BINARY, Min)          \
  TENSORD_FLOATS(TENSORD_BINARY, Div)          \
  TENSORD_FLOATS(TENSORD_BINARY, Equal)        \
  TENSORD_FLOATS(TENSORD_BINARY, NotEqual)     \
  TENSORD_FLOATS(TENSORD_BINARY, Less)         \
  TENSORD_FLOATS(TENSORD_BINARY, LessEqual)    \
  TENSORD_FLOATS(TENSORD_BINARY, Greater)      \
  TENSORD_FLOATS(TENSORD_BINARY, GreaterEqual) \
  TENSORD_BINARY(Add, int8_t)                  \
  TENSORD_BINARY(Add, int16_t)                 \
  TENSORD_BINARY(Add, int32_t)                 \
  TENSORD_BINARY(Add, int64_t)

HWY_BEFORE_NAMESPACE();
namespace tensord::core::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Calls full(i) at every whole vector of [0, count), then tail(i) for each
/// element that is left.
template <class D, class Full, class Tail>
HWY_INLINE void ForEachVector(D d, int64_t count, Full full, Tail tail) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) full(i);
  for (; i < count; ++i) tail(i);
}

/// out[i] = op(d, x[i]), the tail through a vector as well.
template <typename T, class Op>
HWY_INLINE void MapBlock(T* x, int64_t count, Op op) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> d1;
  ForEachVector(
      d, count,
      [&](int64_t i)
          HWY_ATTR { hn::StoreU(op(d, hn::LoadU(d, x + i)), d, x + i); },
      [&](int64_t i)
          HWY_ATTR { hn::StoreU(op(d1, hn::LoadU(d1, x + i)), d1, x + i); });
}

template <typename T, class Op>
HWY_INLINE void CombineBlocks(const T* x, const T* y, T* out, int64_t count,
                              Op op) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> d1;
  ForEachVector(
      d, count,
      [&](int64_t i) HWY_ATTR {
        hn::StoreU(op(d, hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, out + i);
      },
      [&](int64_t i) HWY_ATTR {
        hn::StoreU(op(d1, hn::LoadU(d1, x + i), hn::LoadU(d1, y + i)), d1,
                   out + i);
      });
}

// An operator on vectors, as a function object.
#define TENSORD_UNARY_OP(name, result)                         \
  struct name##Op {                                            \
    template <class D, class V>                                \
    HWY_INLINE V operator()([[maybe_unused]] D d, V x) const { \
      return result;                                           \
    }                                                          \
  };
#define TENSORD_BINARY_OP(name, result)                             \
  struct name##Op {                                                 \
    template <class D, class V>                                     \
    HWY_INLINE V operator()([[maybe_unused]] D d, V x, V y) const { \
      return result;                                                \
    }                                                               \
  };
TENSORD_UNARY_OP(Sqrt, hn::Sqrt(x))
TENSORD_UNARY_OP(Rcp, hn::Div(hn::Set(d, 1), x))
TENSORD_UNARY_OP(Relu, hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x))
TENSORD_UNARY_OP(Abs, hn::Abs(x))
TENSORD_UNARY_OP(Neg, hn::Neg(x))
TENSORD_UNARY_OP(Ceil, hn::Ceil(x))
TENSORD_UNARY_OP(Floor, hn::Floor(x))
TENSORD_BINARY_OP(Add, hn::Add(x, y))
TENSORD_BINARY_OP(Mul, hn::Mul(x, y))
TENSORD_BINARY_OP(Div, hn::Div(x, y))
// 1 where it holds, else 0.
TENSORD_BINARY_OP(Equal, hn::IfThenElseZero(hn::Eq(x, y), hn::Set(d, 1)))
TENSORD_BINARY_OP(NotEqual, hn::IfThenZeroElse(hn::Eq(x, y), hn::Set(d, 1)))
TENSORD_BINARY_OP(Less, hn::IfThenElseZero(hn::Lt(x, y), hn::Set(d, 1)))
TENSORD_BINARY_OP(LessEqual, hn::IfThenElseZero(hn::Le(x, y), hn::Set(d, 1)))
TENSORD_BINARY_OP(Greater, hn::IfThenElseZero(hn::Lt(y, x), hn::Set(d, 1)))
TENSORD_BINARY_OP(GreaterEqual, hn::IfThenElseZero(hn::Le(y, x), hn::Set(d, 1)))
// NaN when either is.
TENSORD_BINARY_OP(Max, hn::IfThenElse(hn::Eq(y, y),
                                      hn::IfThenElse(hn::Lt(x, y), y, x), y))
TENSORD_BINARY_OP(Min, hn::IfThenElse(hn::Eq(y, y),
                                      hn::IfThenElse(hn::Lt(y, x), y, x), y))
#undef TENSORD_UNARY_OP
#undef TENSORD_BINARY_OP

#define TENSORD_UNARY(name, T) \
  void name##_##T(T* x, int64_t count) { MapBlock(x, count, name##Op()); }
#define TENSORD_BINARY(name, T)                                    \
  void name##_##T(const T* x, const T* y, T* out, int64_t count) { \
    CombineBlocks(x, y, out, count, name##Op());                   \
  }
#define TENSORD_CHOOSE(T)                                                     \
  void Choose_##T(const T* condition, const T* x, const T* z, T* out,         \
                  int64_t count) {                                            \
    const auto choose = [&](auto d, int64_t i) HWY_ATTR {                     \
      const auto is_false = hn::Eq(hn::LoadU(d, condition + i), hn::Zero(d)); \
      hn::StoreU(                                                             \
          hn::IfThenElse(is_false, hn::LoadU(d, z + i), hn::LoadU(d, x + i)), \
          d, out + i);                                                        \
    };                                                                        \
    const hn::ScalableTag<T> d;                                               \
    const hn::CappedTag<T, 1> d1;                                             \
    ForEachVector(                                                            \
        d, count, [&](int64_t i) HWY_ATTR { choose(d, i); },                  \
        [&](int64_t i) HWY_ATTR { choose(d1, i); });                          \
  }
#define TENSORD_SCALE(T)                                   \
  void Scale_##T(T factor, T* x, int64_t count) {          \
    MapBlock(x, count, [factor](auto d, auto v) HWY_ATTR { \
      return hn::Mul(hn::Set(d, factor), v);               \
    });                                                    \
  }
TENSORD_UNARY_BLOCKS
TENSORD_BINARY_BLOCKS
TENSORD_SCALE(float)
TENSORD_SCALE(double)
TENSORD_CHOOSE(float)
TENSORD_CHOOSE(double)
#undef TENSORD_UNARY
#undef TENSORD_BINARY
#undef TENSORD_SCALE
#undef TENSORD_CHOOSE

/// Combines pairs of neighbours, of these pairs, and so on.
template <typename T, class Op>
HWY_INLINE T CombineLanes(T* x, int64_t count, Op op) {
  const hn::CappedTag<T, 1> d;
  for (; count > 1; count = (count + 1) / 2) {
    for (int64_t i = 0; i < count / 2; ++i) {
      hn::StoreU(op(d, hn::LoadU(d, x + 2 * i), hn::LoadU(d, x + 2 * i + 1)), d,
                 x + i);
    }
    if (count % 2 != 0) x[count / 2] = x[count - 1];
  }
  return x[0];
}

/// Eight running vectors hide the latency of an operation; each of their lanes
/// is one leaf of the tree.
template <typename T, class Op>
HWY_INLINE T CombineBlock(const T* x, int64_t count, T identity, Op op) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> d1;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s0 = hn::Set(d, identity);
  auto s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  int64_t i = 0;
  for (; i + 8 * lanes <= count; i += 8 * lanes) {
    s0 = op(d, s0, hn::LoadU(d, x + i));
    s1 = op(d, s1, hn::LoadU(d, x + i + lanes));
    s2 = op(d, s2, hn::LoadU(d, x + i + 2 * lanes));
    s3 = op(d, s3, hn::LoadU(d, x + i + 3 * lanes));
    s4 = op(d, s4, hn::LoadU(d, x + i + 4 * lanes));
    s5 = op(d, s5, hn::LoadU(d, x + i + 5 * lanes));
    s6 = op(d, s6, hn::LoadU(d, x + i + 6 * lanes));
    s7 = op(d, s7, hn::LoadU(d, x + i + 7 * lanes));
  }
  for (; i + lanes <= count; i += lanes) s0 = op(d, s0, hn::LoadU(d, x + i));
  auto tail = hn::Set(d1, identity);
  for (; i < count; ++i) tail = op(d1, tail, hn::LoadU(d1, x + i));
  const auto low = op(d, op(d, s0, s1), op(d, s2, s3));
  const auto high = op(d, op(d, s4, s5), op(d, s6, s7));
  HWY_ALIGN T leaves[HWY_MAX_BYTES / sizeof(T) + 1];
  hn::Store(op(d, low, high), d, leaves);
  hn::StoreU(tail, d1, leaves + lanes);
  return CombineLanes(leaves, lanes + 1, op);
}

#define TENSORD_COMBINE(name, T, identity)                  \
  T name##Of_##T(const T* x, int64_t count) {               \
    return CombineBlock(x, count, T(identity), name##Op()); \
  }
TENSORD_COMBINE(Add, float, 0)
TENSORD_COMBINE(Add, double, 0)
TENSORD_COMBINE(Max, float, -std::numeric_limits<float>::infinity())
TENSORD_COMBINE(Max, double, -std::numeric_limits<double>::infinity())
TENSORD_COMBINE(Min, float, std::numeric_limits<float>::infinity())
TENSORD_COMBINE(Min, double, std::numeric_limits<double>::infinity())
#undef TENSORD_COMBINE

// Highway converts float16 with subnormals, infinities and NaN only where it
// has the instructions.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
void HalfToFloat(const Half* from, float* to, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  const auto* const bits = reinterpret_cast<const hwy::float16_t*>(from);
  ForEachVector(
      d, count,
      [&](int64_t i) HWY_ATTR {
        hn::StoreU(hn::PromoteTo(d, hn::LoadU(half, bits + i)), d, to + i);
      },
      [&](int64_t i) HWY_ATTR { to[i] = from[i].ToFloat(); });
}
void FloatToHalf(const float* from, Half* to, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  auto* const bits = reinterpret_cast<hwy::float16_t*>(to);
  ForEachVector(
      d, count,
      [&](int64_t i) HWY_ATTR {
        hn::StoreU(hn::DemoteTo(half, hn::LoadU(d, from + i)), half, bits + i);
      },
      [&](int64_t i) HWY_ATTR { to[i] = Half::From(from[i]); });
}
#else
void HalfToFloat(const Half* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i].ToFloat();
}
void FloatToHalf(const float* from, Half* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = Half::From(from[i]);
}
#endif

void Bfloat16ToFloat(const Bfloat16* from, float* to, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> wide;
  const hn::Rebind<uint16_t, decltype(d)> narrow;
  const auto* const bits = reinterpret_cast<const uint16_t*>(from);
  ForEachVector(
      d, count,
      [&](int64_t i) HWY_ATTR {
        const auto x = hn::PromoteTo(wide, hn::LoadU(narrow, bits + i));
        hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(x)), d, to + i);
      },
      [&](int64_t i) HWY_ATTR { to[i] = from[i].ToFloat(); });
}

void FloatToBfloat16(const float* from, Bfloat16* to, int64_t count) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> wide;
  const hn::RebindToSigned<decltype(d)> signed_wide;
  const hn::Rebind<uint16_t, decltype(d)> narrow;
  auto* const bits = reinterpret_cast<uint16_t*>(to);
  ForEachVector(
      d, count,
      [&](int64_t i) HWY_ATTR {
        const auto value = hn::LoadU(d, from + i);
        const auto x = hn::BitCast(wide, value);
        const auto odd = hn::And(hn::ShiftRight<16>(x), hn::Set(wide, 1));
        const auto rounded = hn::Add(x, hn::Add(odd, hn::Set(wide, 0x7fff)));
        const auto quiet = hn::Or(x, hn::Set(wide, 0x400000));
        const auto is_number = hn::RebindMask(wide, hn::Eq(value, value));
        const auto upper =
            hn::ShiftRight<16>(hn::IfThenElse(is_number, rounded, quiet));
        hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(signed_wide, upper)),
                   narrow, bits + i);
      },
      [&](int64_t i) HWY_ATTR { to[i] = Bfloat16::From(from[i]); });
}

void FloatToDouble(const float* from, double* to, int64_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  ForEachVector(
      d, count,
      [&](int64_t i) HWY_ATTR {
        hn::StoreU(hn::PromoteTo(d, hn::LoadU(narrow, from + i)), d, to + i);
      },
      [&](int64_t i) HWY_ATTR { to[i] = from[i]; });
}

void DoubleToFloat(const double* from, float* to, int64_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> narrow;
  ForEachVector(
      d, count,
      [&](int64_t i) HWY_ATTR {
        hn::StoreU(hn::DemoteTo(narrow, hn::LoadU(d, from + i)), narrow,
                   to + i);
      },
      [&](int64_t i) HWY_ATTR { to[i] = static_cast<float>(from[i]); });
}

}  // namespace
}  // namespace tensord::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::core {
#define TENSORD_UNARY(name, T)                  \
  HWY_EXPORT(name##_##T);                       \
  template <>                                   \
  void name##Block(T* x, int64_t count) {       \
    HWY_DYNAMIC_DISPATCH(name##_##T)(x, count); \
  }
#define TENSORD_BINARY(name, T)                                     \
  HWY_EXPORT(name##_##T);                                           \
  template <>                                                       \
  void name##Block(const T* x, const T* y, T* out, int64_t count) { \
    HWY_DYNAMIC_DISPATCH(name##_##T)(x, y, out, count);             \
  }
#define TENSORD_SCALE(T)                               \
  HWY_EXPORT(Scale_##T);                               \
  template <>                                          \
  void ScaleBlock(T factor, T* x, int64_t count) {     \
    HWY_DYNAMIC_DISPATCH(Scale_##T)(factor, x, count); \
  }
#define TENSORD_CHOOSE(T)                                              \
  HWY_EXPORT(Choose_##T);                                              \
  template <>                                                          \
  void ChooseBlock(const T* condition, const T* x, const T* z, T* out, \
                   int64_t count) {                                    \
    HWY_DYNAMIC_DISPATCH(Choose_##T)(condition, x, z, out, count);     \
  }
#define TENSORD_CONVERT(name, From, To)                        \
  HWY_EXPORT(name);                                            \
  void ConvertBlock(const From* from, To* to, int64_t count) { \
    HWY_DYNAMIC_DISPATCH(name)(from, to, count);               \
  }
TENSORD_UNARY_BLOCKS
TENSORD_BINARY_BLOCKS
TENSORD_SCALE(float)
TENSORD_SCALE(double)
TENSORD_CHOOSE(float)
TENSORD_CHOOSE(double)
TENSORD_CONVERT(HalfToFloat, Half, float)
TENSORD_CONVERT(FloatToHalf, float, Half)
TENSORD_CONVERT(Bfloat16ToFloat, Bfloat16, float)
TENSORD_CONVERT(FloatToBfloat16, float, Bfloat16)
TENSORD_CONVERT(FloatToDouble, float, double)
TENSORD_CONVERT(DoubleToFloat, double, float)
#undef TENSORD_UNARY
#undef TENSORD_BINARY
#undef TENSORD_SCALE
#undef TENSORD_CHOOSE
#undef TENSORD_CONVERT

#define TENSORD_COMBINE(op, name, T)                   \
  HWY_EXPORT(op##Of_##T);                              \
  template <>                                          \
  T name##Of(const T* x, int64_t count) {              \
    return HWY_DYNAMIC_DISPATCH(op##Of_##T)(x, count); \
  }
TENSORD_COMBINE(Add, Sum, float)
TENSORD_COMBINE(Add, Sum, double)
TENSORD_COMBINE(Max, Max, float)
TENSORD_COMBINE(Max, Max, double)
TENSORD_COMBINE(Min, Min, float)
TENSORD_COMBINE(Min, Min, double)
#undef TENSORD_COMBINE

}  // namespace tensord::core
#endif  // HWY_ONCE
