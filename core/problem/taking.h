// What kernels share that take elements by indices.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "core/ops/type_tables.h"
#include "core/problem/elementwise_problem.h"

namespace tensord::core {

/// Whether the mode that TAKE takes from has an index, which may count from
/// its end; then it is counted from its begin.
inline bool FindIndex(const LoopMode<1>& taken, int64_t& index) {
  if (index < 0) index += taken.extent;
  return 0 <= index && index < taken.extent;
}

/// Whether elements of d are those of a, bit by bit, where alpha is 1.
inline bool TakesBits(const ElementwiseProblem& problem) {
  const ElementType type = problem.types[ElementwiseProblem::kD];
  return problem.types[ElementwiseProblem::kA] == type &&
         problem.unary[ElementwiseProblem::kA] == UnaryOperator::kIdentity &&
         problem.compute_element() ==
             ComputeElement(type, type, DefaultComputeType(type));
}

/// OK unless the operation is a TAKE, which other kernels carry out.
absl::Status CheckTakesNothing(const ElementwiseProblem& problem);

/// Of indices that it does not have; names one of the two.
absl::Status IndexOutOfRange(const LoopMode<1>& taken, int64_t lowest,
                             int64_t highest);

}  // namespace tensord::core
