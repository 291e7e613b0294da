// How much memory problems hold beyond themselves.
#pragma once

#include <cstdint>

#include "core/base/heap_bytes.h"
#include "core/problem/contraction_problem.h"
#include "core/problem/elementwise_problem.h"
#include "core/problem/permutation_problem.h"
#include "core/problem/reduction_problem.h"

namespace tensord::core {

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

}  // namespace tensord::core
