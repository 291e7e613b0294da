// How much memory problems hold beyond themselves.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/base/heap_bytes.h"
#include "core/problem/contraction_problem.h"
#include "core/problem/elementwise_problem.h"
#include "core/problem/factorization_problem.h"
#include "core/problem/linear_solve_problem.h"
#include "core/problem/permutation_problem.h"
#include "core/problem/reduction_problem.h"

namespace tensord::core {

template <HasFields Problem>
int64_t HeapBytes(const Problem& problem) {
  int64_t bytes = 0;
  const auto add = [&]<typename Field>(const Field& field) {
    if constexpr (!std::is_trivially_copyable_v<Field>) {
      bytes += HeapBytes(field);
    }
  };
  Problem::VisitFields(problem,
                       [&](const auto&... fields) { (add(fields), ...); });
  return bytes;
}

}  // namespace tensord::core
