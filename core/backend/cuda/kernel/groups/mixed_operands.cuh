// Element-wise expressions of operands of any types, some elements at a time:
// those of an input are all under way before the first is needed.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "core/backend/cuda/kernel/element_change.cuh"
#include "core/backend/cuda/kernel/expression.cuh"

namespace tensord::core::cuda {

/// Elements of a thread, one bit each.
using Mask = uint32_t;

/// Reads the elements in `mask`; others are zero.
template <typename Word, typename Offset, int count>
__device__ __forceinline__ void LoadWords(const void* data, int64_t base,
                                          const Offset (&offsets)[count],
                                          Mask mask, Word (&words)[count]) {
  const Word* const from = static_cast<const Word*>(data) + base;
#pragma unroll
  for (int e = 0; e < count; ++e) {
    words[e] = Word{};
    if (mask >> e & 1) words[e] = from[offsets[e]];
  }
}

/// What a whole element of type Stored is read as at once.
template <typename Stored>
using WordOf = std::conditional_t<
    sizeof(Stored) == 16, uint4,
    std::conditional_t<
        sizeof(Stored) == 8, uint64_t,
        std::conditional_t<
            sizeof(Stored) == 4, uint32_t,
            std::conditional_t<sizeof(Stored) == 2, uint16_t, uint8_t>>>>;

/// `word` in a wider one, and back.
template <typename To, typename From>
__device__ __forceinline__ To Rewidened(From word) {
  if constexpr (std::is_same_v<To, From>) {
    return word;
  } else if constexpr (std::is_same_v<To, uint4>) {
    const auto wide = static_cast<uint64_t>(word);
    return {static_cast<uint32_t>(wide), static_cast<uint32_t>(wide >> 32), 0,
            0};
  } else if constexpr (std::is_same_v<From, uint4>) {
    return static_cast<To>(uint64_t{word.y} << 32 | word.x);
  } else {
    return static_cast<To>(word);
  }
}

/// Operands of any types, and any operators, that arithmetic in Number can
/// have.
template <typename Number>
struct Mixed {
  /// An element as it was read. Converting it at once would wait for it before
  /// the next input is read.
  using Held = WordOf<Number>;
  /// Operators that are functions are called.
  static constexpr bool kHasCalls = true;

  template <typename Offset, int count>
  static __device__ __forceinline__ void LoadInput(
      const Expression& expression, int i, int64_t base,
      const Offset (&offsets)[count], Mask mask, Held (&held)[count]) {
    VisitElementType(expression.types[i], [&](auto zero) {
      using Stored = decltype(zero);
      if constexpr (kConverts<Number, Stored> &&
                    sizeof(Stored) <= sizeof(Held)) {
        WordOf<Stored> words[count];
        LoadWords(expression.inputs[i], base, offsets, mask, words);
#pragma unroll
        for (int e = 0; e < count; ++e) held[e] = Rewidened<Held>(words[e]);
      }
    });
  }

  /// Writes element `e` of d to `base` + `offset_of(e)`.
  template <typename OffsetOf, int count>
  static __device__ __forceinline__ void Finish(const Expression& expression,
                                                const Held (&held)[3][count],
                                                int64_t base,
                                                OffsetOf&& offset_of,
                                                Mask mask) {
    const Arithmetic arithmetic =
        ArithmeticOf(expression.types[2], expression.compute_type);
    Number terms[3][count] = {};
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (expression.inputs[i] == nullptr) continue;
      VisitElementType(expression.types[i], [&](auto zero) {
        using Stored = decltype(zero);
        if constexpr (kConverts<Number, Stored> &&
                      sizeof(Stored) <= sizeof(Held)) {
#pragma unroll
          for (int e = 0; e < count; ++e) {
            terms[i][e] = ElementAs<Number, Stored>(
                Rewidened<WordOf<Stored>>(held[i][e]));
          }
        }
      });
    }
#pragma unroll
    for (int e = 0; e < count; ++e) {
      if ((mask >> e & 1) == 0) continue;
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        if (expression.inputs[i] == nullptr) continue;
        terms[i][e] = TermOf(expression, arithmetic, i, terms[i][e]);
      }
      Store(expression.d, expression.types[3], base + offset_of(e),
            Combine(expression, arithmetic, terms[0][e], terms[1][e],
                    terms[2][e]));
    }
  }
};

}  // namespace tensord::core::cuda
