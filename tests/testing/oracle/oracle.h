// The value of every operation, element by element, from its Desc.
//
// Shares with the product the Desc structs and the enums alone: modes are
// looked up, addresses computed, elements decoded and operators defined here
// again, in the most direct way and in long double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/ops/contraction.h"
#include "core/ops/elementwise.h"
#include "core/ops/permutation.h"
#include "core/ops/reduction.h"
#include "core/ops/scalar.h"
#include "tests/testing/oracle/error_bound.h"

namespace tensord::test {

/// Where the first elements of the inputs lie, in host memory, and the factors
/// of one execution. An operand that the operation lacks stays null; so may one
/// whose factor is zero.
struct Inputs {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  const std::byte* c = nullptr;
  core::Scalar alpha = core::kOne;
  core::Scalar beta = core::kZero;
  core::Scalar gamma = core::kZero;
};

/// What one element of d should be.
struct Expected {
  int64_t offset;     // in elements, from d's first
  Estimate estimate;  // of floating-point types
  int64_t integer;    // of integer types
  /// Of integer types: another value that is as good, where an error of what
  /// went before decides.
  int64_t also = integer;
};

/// What adds up the products of a contraction.
enum class Adder {
  kNearest,      // rounds to nearest
  kTensorCores,  // Rounding::OnTensorCores()
};

/// Every element of d, each once.
///
/// Requires  Validate(desc).ok().
std::vector<Expected> Evaluate(const core::PermutationDesc& desc,
                               const Inputs& inputs);
std::vector<Expected> Evaluate(const core::ElementwiseDesc& desc,
                               const Inputs& inputs);
std::vector<Expected> Evaluate(const core::ReductionDesc& desc,
                               const Inputs& inputs);
std::vector<Expected> Evaluate(const core::ContractionDesc& desc,
                               const Inputs& inputs,
                               Adder adder = Adder::kNearest);

}  // namespace tensord::test
