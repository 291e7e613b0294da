// Whether a problem is one that Canonicalize() could have made.
#pragma once

#include "absl/status/status.h"
#include "core/plan/plan.h"

namespace tensord::core {

/// OK when `problem` keeps every invariant of its type: what kernels go by and
/// do not look at again. For problems that came from elsewhere.
///
/// Errors  INVALID_ARGUMENT, UNIMPLEMENTED: types that do not go together;
///         operators that a type lacks; extents and strides that are negative,
///         overflow, let d overlap itself or are not Canonical().
absl::Status CheckProblem(const AnyProblem& problem);

}  // namespace tensord::core
