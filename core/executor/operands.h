// The operands of one execution, whatever the operation.
#pragma once

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "core/executor/executor.h"
#include "core/ops/any_desc.h"
#include "core/ops/scalar.h"

namespace tensord::core {

/// Where operands are, by their place, and the factors of one execution. What
/// an operation does not have is not looked at.
struct Placement {
  std::array<const void*, 3> inputs = {};        // a, b, c; null: not read
  std::array<void*, kMostResults> outputs = {};  // d alone, or factors
  Scalar alpha = kOne;
  Scalar beta = kZero;
  Scalar gamma = kZero;
  Truncation truncation = {};  // of an SVD, as is:
  int64_t* kept = nullptr;     // see FactorizationOperands
};

/// The operands of an execution of `desc`.
AnyOperands OperandsAt(const AnyDesc& desc, const Placement& at);

/// Of each result, in the order that AnyOperands has, the bytes from its first
/// to its last element; 0: there is none.
std::array<int64_t, kMostResults> ResultBytes(const AnyDesc& desc);

/// Has an execution write elsewhere.
/// Requires  `outputs` has one for each of ResultBytes().
void RedirectOutputs(absl::Span<void* const> outputs, AnyOperands& operands);

}  // namespace tensord::core
