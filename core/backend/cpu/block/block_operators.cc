#include "core/backend/cpu/block/block_operators.h"

#include <algorithm>
#include <array>
#include <complex>
#include <utility>

#include "core/backend/cpu/block/block_simd.h"
#include "core/backend/cpu/block/element_math.h"

namespace tensord::core {
namespace {

template <typename T>
constexpr bool kIsReal = std::is_floating_point_v<T>;

template <typename T, UnaryOperator op>
void ApplyToBlock(T* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = ApplyUnary(op, x[i]);
}

template <typename T, BinaryOperator op>
void ApplyToBlocks(const T* x, const T* y, T* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = ApplyBinary(op, x[i], y[i]);
}

template <typename T>
void AddComplexBlocks(const T* x, const T* y, T* out, int64_t count) {
  using Part = typename T::value_type;
  AddBlock(reinterpret_cast<const Part*>(x), reinterpret_cast<const Part*>(y),
           reinterpret_cast<Part*>(out), 2 * count);
}

template <typename T>
using UnaryTable = std::array<UnaryBlock<T>, kUnaryOperatorCount>;

template <typename T, size_t... i>
UnaryTable<T> LoopTable(std::index_sequence<i...>) {
  return {&ApplyToBlock<T, static_cast<UnaryOperator>(i)>...};
}

template <typename T>
UnaryTable<T> MakeUnaryTable() {
  UnaryTable<T> table =
      LoopTable<T>(std::make_index_sequence<kUnaryOperatorCount>());
  const auto at = [&](UnaryOperator op) -> UnaryBlock<T>& {
    return table[static_cast<size_t>(op)];
  };
  at(UnaryOperator::kIdentity) = nullptr;
  if constexpr (!kIsComplex<T>) at(UnaryOperator::kConj) = nullptr;
  if constexpr (kIsReal<T>) {
    at(UnaryOperator::kSqrt) = SqrtBlock;
    at(UnaryOperator::kRcp) = RcpBlock;
    at(UnaryOperator::kRelu) = ReluBlock;
    at(UnaryOperator::kAbs) = AbsBlock;
    at(UnaryOperator::kNeg) = NegBlock;
    at(UnaryOperator::kCeil) = CeilBlock;
    at(UnaryOperator::kFloor) = FloorBlock;
  }
  return table;
}

template <typename T>
using BinaryTable = std::array<BinaryBlock<T>, kBinaryOperatorCount>;

template <typename T, size_t... i>
BinaryTable<T> BinaryLoops(std::index_sequence<i...>) {
  return {&ApplyToBlocks<T, static_cast<BinaryOperator>(i)>...};
}

template <typename T>
BinaryTable<T> MakeBinaryTable() {
  BinaryTable<T> table =
      BinaryLoops<T>(std::make_index_sequence<kBinaryOperatorCount>());
  const auto at = [&](BinaryOperator op) -> BinaryBlock<T>& {
    return table[static_cast<size_t>(op)];
  };
  if constexpr (kIsComplex<T>) {
    at(BinaryOperator::kAdd) = AddComplexBlocks<T>;
  } else if constexpr (std::is_signed_v<T>) {
    at(BinaryOperator::kAdd) = AddBlock;
  }
  if constexpr (kIsReal<T>) {
    at(BinaryOperator::kMul) = MulBlock;
    at(BinaryOperator::kMax) = MaxBlock;
    at(BinaryOperator::kMin) = MinBlock;
    at(BinaryOperator::kDiv) = DivBlock;
    at(BinaryOperator::kEqual) = EqualBlock;
    at(BinaryOperator::kNotEqual) = NotEqualBlock;
    at(BinaryOperator::kLess) = LessBlock;
    at(BinaryOperator::kLessEqual) = LessEqualBlock;
    at(BinaryOperator::kGreater) = GreaterBlock;
    at(BinaryOperator::kGreaterEqual) = GreaterEqualBlock;
  }
  return table;
}

template <typename Stored>
void RoundThrough(float* x, int64_t count) {
  std::array<Stored, 256> rounded;
  for (int64_t at = 0; at < count; at += rounded.size()) {
    const int64_t part = std::min<int64_t>(count - at, rounded.size());
    ConvertBlock(x + at, rounded.data(), part);
    ConvertBlock(rounded.data(), x + at, part);
  }
}

}  // namespace

template <typename T>
UnaryBlock<T> FindUnary(UnaryOperator op) {
  static const UnaryTable<T> table = MakeUnaryTable<T>();
  return table[static_cast<size_t>(op)];
}

template <typename T>
BinaryBlock<T> FindBinary(BinaryOperator op) {
  static const BinaryTable<T> table = MakeBinaryTable<T>();
  return table[static_cast<size_t>(op)];
}

template <typename T>
UnaryBlock<T> FindRounding(ComputeType compute) {
  if constexpr (std::is_same_v<T, float>) {
    if (compute == ComputeType::kFloat16) return RoundThrough<Half>;
    if (compute == ComputeType::kBfloat16) return RoundThrough<Bfloat16>;
  }
  return nullptr;
}

template <typename T>
void Scale(T factor, T* x, int64_t count) {
  if constexpr (kIsReal<T>) {
    ScaleBlock(factor, x, count);
  } else {
    if constexpr (kIsComplex<T>) {
      if (factor.imag() == 0) {
        ScaleBlock(factor.real(), reinterpret_cast<typename T::value_type*>(x),
                   2 * count);
        return;
      }
    }
    for (int64_t i = 0; i < count; ++i) x[i] = Multiply(factor, x[i]);
  }
}

template <typename T>
void Choose(const T* condition, const T* x, const T* z, T* out, int64_t count) {
  if constexpr (kIsReal<T>) {
    ChooseBlock(condition, x, z, out, count);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = condition[i] != T(0) ? x[i] : z[i];
    }
  }
}

template <typename T>
void CombineRows(BinaryOperator op, const T* x, int64_t row_count,
                 int64_t width, T* out) {
  if constexpr (kIsReal<T>) {
    if (width == 1 && op != BinaryOperator::kMul) {
      *out = op == BinaryOperator::kAdd   ? SumOf(x, row_count)
             : op == BinaryOperator::kMax ? MaxOf(x, row_count)
                                          : MinOf(x, row_count);
      return;
    }
  }
  if (row_count == 1) {
    std::copy_n(x, width, out);
    return;
  }
  const BinaryBlock<T> combine = FindBinary<T>(op);
  while (row_count > 1) {
    const int64_t half = row_count / 2;
    const int64_t rest = row_count - half;
    combine(x, x + rest * width, out, half * width);
    if (rest > half && x != out) {
      std::copy_n(x + half * width, width, out + half * width);
    }
    x = out;
    row_count = rest;
  }
}

#define TENSORD_INSTANTIATE(T)                                        \
  template UnaryBlock<T> FindUnary<T>(UnaryOperator);                 \
  template BinaryBlock<T> FindBinary<T>(BinaryOperator);              \
  template UnaryBlock<T> FindRounding<T>(ComputeType);                \
  template void Scale<T>(T, T*, int64_t);                             \
  template void Choose<T>(const T*, const T*, const T*, T*, int64_t); \
  template void CombineRows<T>(BinaryOperator, const T*, int64_t, int64_t, T*)
TENSORD_INSTANTIATE(float);
TENSORD_INSTANTIATE(double);
TENSORD_INSTANTIATE(std::complex<float>);
TENSORD_INSTANTIATE(std::complex<double>);
TENSORD_INSTANTIATE(int8_t);
TENSORD_INSTANTIATE(int16_t);
TENSORD_INSTANTIATE(int32_t);
TENSORD_INSTANTIATE(int64_t);
TENSORD_INSTANTIATE(uint8_t);
TENSORD_INSTANTIATE(bool);
#undef TENSORD_INSTANTIATE

}  // namespace tensord::core
