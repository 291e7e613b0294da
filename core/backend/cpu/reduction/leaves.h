// Runs of elements that are combined in order, several side by side.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/backend/cpu/block/element_math.h"

namespace tensord::core {

/// Elements of a leaf.
inline constexpr int64_t kLeaf = 32;
/// Leaves side by side: each waits for its own additions alone.
inline constexpr int64_t kLeaves = 8;

/// What is done to leaves, one behind the other in memory.
template <typename T>
struct LeafFunctions {
  /// out[i] = what x comes to from the begin of its leaf up to i, for kLeaves.
  void (*scan)(const T* x, T* out);
  /// x[i] = op(before, x[i])
  void (*put_before)(T before, T* x, int64_t count);
  /// out[i] = what x comes to up to i, and before that `before` unless it is
  /// null; one after the other.
  void (*scan_in_order)(const T* x, int64_t count, const T* before, T* out);
};

/// ApplyBinary(); of MAX and MIN by their instructions, which give x where y is
/// larger than nothing.
template <BinaryOperator op, typename T>
T Combined(T x, T y) {
  if constexpr (std::is_floating_point_v<T> && op == BinaryOperator::kMax) {
    return y != y ? y : y > x ? y : x;
  } else if constexpr (std::is_floating_point_v<T> &&
                       op == BinaryOperator::kMin) {
    return y != y ? y : y < x ? y : x;
  } else {
    return ApplyBinary(op, x, y);
  }
}

template <BinaryOperator op, typename T>
LeafFunctions<T> LeafFunctionsOf() {
  return {.scan =
              [](const T* x, T* out) {
                T sums[kLeaves];
                for (int64_t leaf = 0; leaf < kLeaves; ++leaf) {
                  out[leaf * kLeaf] = sums[leaf] = x[leaf * kLeaf];
                }
                for (int64_t i = 1; i < kLeaf; ++i) {
                  for (int64_t leaf = 0; leaf < kLeaves; ++leaf) {
                    const int64_t at = leaf * kLeaf + i;
                    out[at] = sums[leaf] = Combined<op>(sums[leaf], x[at]);
                  }
                }
              },
          .put_before =
              [](T before, T* x, int64_t count) {
                int64_t i = 0;
                for (; i + kLeaf <= count; i += kLeaf) {
                  for (int64_t j = 0; j < kLeaf; ++j) {
                    x[i + j] = Combined<op>(before, x[i + j]);
                  }
                }
                for (; i < count; ++i) x[i] = Combined<op>(before, x[i]);
              },
          .scan_in_order =
              [](const T* x, int64_t count, const T* before, T* out) {
                T value =
                    before == nullptr ? x[0] : Combined<op>(*before, x[0]);
                out[0] = value;
                for (int64_t i = 1; i < count; ++i) {
                  out[i] = value = Combined<op>(value, x[i]);
                }
              }};
}

/// Requires  Reduces(op), and ValidateBinary() accepts it for T.
template <typename T>
LeafFunctions<T> FindLeafFunctions(BinaryOperator op) {
  switch (op) {
    case BinaryOperator::kMul:
      return LeafFunctionsOf<BinaryOperator::kMul, T>();
    case BinaryOperator::kMax:
      return LeafFunctionsOf<BinaryOperator::kMax, T>();
    case BinaryOperator::kMin:
      return LeafFunctionsOf<BinaryOperator::kMin, T>();
    default: return LeafFunctionsOf<BinaryOperator::kAdd, T>();
  }
}

}  // namespace tensord::core
