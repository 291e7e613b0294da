// How much memory values hold beyond themselves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/plan/plan.h"

namespace tensord::core {

/// What the heap gives for `bytes` bytes: a word of its own, in steps of 16.
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

template <size_t n>
int64_t HeapBytes(const LoopModes<n>& modes) {
  static const size_t inside = LoopModes<n>().capacity();
  return modes.capacity() <= inside
             ? 0
             : HeapBlockBytes(static_cast<int64_t>(modes.capacity() *
                                                   sizeof(LoopMode<n>)));
}

inline int64_t HeapBytes(const PermutationProblem& p) {
  return HeapBytes(p.modes);
}
inline int64_t HeapBytes(const ElementwiseProblem& p) {
  return HeapBytes(p.modes);
}
inline int64_t HeapBytes(const ReductionProblem& p) {
  return HeapBytes(p.kept) + HeapBytes(p.reduced);
}
inline int64_t HeapBytes(const ContractionProblem& p) {
  return HeapBytes(p.batch) + HeapBytes(p.m) + HeapBytes(p.n) + HeapBytes(p.k) +
         HeapBytes(p.a_only) + HeapBytes(p.b_only);
}
inline int64_t HeapBytes(const AnyProblem& problem) {
  return std::visit([](const auto& p) { return HeapBytes(p); }, problem);
}

/// Of a plan that is shared: itself, with the counts of its owners.
inline int64_t SharedPlanBytes(const Plan& plan) {
  return HeapBlockBytes(16 + sizeof(Plan)) + HeapBytes(plan.problem);
}

}  // namespace tensord::core
