#include "core/problem/along.h"

#include "core/base/status.h"

namespace tensord::core {

absl::Status CheckAlongNothing(const ReductionProblem& problem) {
  if (!problem.is_along()) return absl::OkStatus();
  return Unimplemented("ALONG_A_MODE", "it does not go along a mode");
}

absl::Status CheckScans(const ReductionProblem& problem) {
  if (problem.is_along() && !problem.sorts()) return absl::OkStatus();
  return Unimplemented("NOT_ALONG_A_MODE",
                       "it is for cumulative reductions alone");
}

absl::Status CheckSorts(const ReductionProblem& problem) {
  if (problem.sorts()) return absl::OkStatus();
  return Unimplemented("NOTHING_TO_SORT", "it is for sorting alone");
}

}  // namespace tensord::core
