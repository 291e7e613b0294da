// Functions of numbers.
#pragma once

#include "absl/types/span.h"
#include "core/notation/syntax.h"
#include "core/ops/scalar.h"

namespace tensord::core {

/// `function` of as many numbers as it takes, in float64; complex when one of
/// them is. Comparisons give 1 or 0. What is not defined is NaN, as in NumPy.
///
/// Requires  statements have a notation for it, but for a quotient, and complex
///           numbers have it, when one of them is complex.
Scalar ValueOf(const ElementFunction& function, absl::Span<const Scalar> x);

}  // namespace tensord::core
