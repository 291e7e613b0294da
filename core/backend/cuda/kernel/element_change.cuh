// Words on their way from a to d, in device code.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/backend/cuda/kernel/element_math.cuh"
#include "core/backend/cuda/kernel/permutation_tasks.h"

namespace tensord::core::cuda {

/// Calls `visit` with a zero of the type that holds `word_bytes` bytes.
template <typename Visitor>
cudaError_t VisitWord(int word_bytes, Visitor&& visit) {
  switch (word_bytes) {
    case 1: return visit(uint8_t{});
    case 2: return visit(uint16_t{});
    case 4: return visit(uint32_t{});
    case 8: return visit(uint64_t{});
    case 16: return visit(uint4{});
    default: return cudaErrorInvalidValue;
  }
}

/// The element of type Stored in `word`, for arithmetic in T; zero when they
/// do not fit.
template <typename T, typename Stored, typename Word>
__device__ __forceinline__ T ElementAs(Word word) {
  if constexpr (sizeof(Stored) != sizeof(Word) || !kConverts<T, Stored>) {
    return T{};
  } else if constexpr (std::is_same_v<Stored, bool>) {
    return Convert<T>(word != 0 ? 1 : 0);  // any byte but 0 is true
  } else {
    return Convert<T>(std::bit_cast<Stored>(word));
  }
}

/// The element of `type` in `word`, for arithmetic in T.
template <typename T, typename Word>
__device__ __forceinline__ T ElementIn(Word word, ElementType type) {
  T result{};
  VisitElementType(
      type, [&](auto zero) { result = ElementAs<T, decltype(zero)>(word); });
  return result;
}

/// The same of a float32, float16 or bfloat16.
template <typename Word>
__device__ __forceinline__ float FloatIn(Word word, ElementType type) {
  if constexpr (sizeof(Word) == sizeof(Half)) {
    return type == ElementType::kFloat16 ? ElementAs<float, Half>(word)
                                         : ElementAs<float, Bfloat16>(word);
  } else {
    return ElementAs<float, float>(word);
  }
}

template <typename T, typename Word>
__device__ void ChangeInto(const ElementChange& change, Word word, void* d,
                           int64_t offset) {
  const Arithmetic arithmetic =
      ArithmeticOf(change.type_d, change.compute_type);
  T x = ElementIn<T>(word, change.type_a);
  // Operators see what it becomes.
  if constexpr (std::is_integral_v<T>) x = arithmetic.Settle(x);
  x = ApplyUnary(arithmetic, change.unary, x);
  if (change.alpha_real != 1 || change.alpha_imaginary != 0) {
    const T alpha =
        FactorAs<T>(arithmetic, change.alpha_real, change.alpha_imaginary);
    x = arithmetic.Settle(Multiply(alpha, x));
  }
  Store<T>(d, change.type_d, offset, x);
}

/// Stores the element in `word` as the `offset`-th of d, changed as asked. Not
/// inlined, so that a kernel file has all types and operators just once.
template <typename Word>
__device__ __noinline__ void StoreChanged(const ElementChange& change,
                                          Word word, void* d, int64_t offset) {
  switch (change.compute) {
    case ElementType::kFloat64:
      return ChangeInto<double>(change, word, d, offset);
    case ElementType::kComplex64:
      return ChangeInto<std::complex<float>>(change, word, d, offset);
    case ElementType::kComplex128:
      return ChangeInto<std::complex<double>>(change, word, d, offset);
    case ElementType::kFloat32:
      return ChangeInto<float>(change, word, d, offset);
    default: return ChangeInto<int64_t>(change, word, d, offset);
  }
}

/// The same where ElementChange::is_scaled_float holds.
template <typename Word>
__device__ __forceinline__ void StoreScaled(const ElementChange& change,
                                            Word word, void* d,
                                            int64_t offset) {
  const float x =
      static_cast<float>(change.alpha_real) * FloatIn(word, change.type_a);
  if (change.type_d == ElementType::kFloat32) {
    static_cast<float*>(d)[offset] = x;
  } else if (change.type_d == ElementType::kFloat16) {
    static_cast<Half*>(d)[offset] = HalfFrom<Half>(x);
  } else {
    static_cast<Bfloat16*>(d)[offset] = HalfFrom<Bfloat16>(x);
  }
}

/// Stores `word`, moved or changed.
template <bool kMoves, typename Word>
__device__ __forceinline__ void StoreWord(const MoveTask& move, Word word,
                                          int64_t offset) {
  if constexpr (kMoves) {
    static_cast<Word*>(move.d)[offset] = word;
  } else if (sizeof(Word) <= sizeof(float) && move.change.is_scaled_float) {
    StoreScaled(move.change, word, move.d, offset);
  } else {
    StoreChanged(move.change, word, move.d, offset);
  }
}

}  // namespace tensord::core::cuda
