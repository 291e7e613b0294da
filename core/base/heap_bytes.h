// How much memory values hold beyond themselves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace tensord::core {

/// What `bytes` bytes take on the heap: with a word of its own, in steps of 16.
constexpr int64_t HeapBlockBytes(int64_t bytes) {
  return std::max<int64_t>((bytes + 8 + 15) / 16 * 16, 32);
}

inline int64_t HeapBytes(const std::string& text) {
  // Capacity of a string that keeps its text in itself.
  static const size_t inside = std::string().capacity();
  return text.capacity() <= inside
             ? 0
             : HeapBlockBytes(static_cast<int64_t>(text.capacity()) + 1);
}

template <typename T>
int64_t HeapBytes(const std::vector<T>& values) {
  return values.capacity() == 0 ? 0
                                : HeapBlockBytes(static_cast<int64_t>(
                                      values.capacity() * sizeof(T)));
}

template <typename T, size_t n>
int64_t HeapBytes(const absl::InlinedVector<T, n>& values) {
  static const size_t inside = absl::InlinedVector<T, n>().capacity();
  return values.capacity() <= inside ? 0
                                     : HeapBlockBytes(static_cast<int64_t>(
                                           values.capacity() * sizeof(T)));
}

}  // namespace tensord::core
