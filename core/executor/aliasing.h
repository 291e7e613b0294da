// Which operands may share memory.
#pragma once

#include <array>
#include <cstddef>

#include "absl/status/status.h"
#include "core/backend/kernel.h"
#include "core/executor/executor.h"
#include "core/ops/any_desc.h"

namespace tensord::core {

/// Operands of which it is known that they share no element.
struct DisjointOperands {
  template <size_t count>
  using FromResults = std::array<std::array<bool, kMostResults>, count>;

  FromResults<3> inputs = {};              // (input)(result)
  FromResults<kMostResults> results = {};  // (result)(another)
};

/// OK when no input that is read overlaps d, or does so as allowed: c may be d
/// with the same layout and mode order; so may a and b in an element-wise
/// operation.
///
/// Overlap is judged by address ranges, from the first to the last element of
/// each: interleaved operands count as overlapping, unless `disjoint` says
/// otherwise.
///
/// Requires  the Desc is valid. Inputs whose factor is zero are not looked at.
/// Errors    INVALID_ARGUMENT, reason OUTPUT_OVERLAPS_INPUT.
absl::Status CheckAliasing(const PermutationDesc& desc,
                           const PermutationOperands& operands,
                           const DisjointOperands& disjoint = {});
absl::Status CheckAliasing(const ElementwiseDesc& desc,
                           const ElementwiseOperands& operands,
                           const DisjointOperands& disjoint = {});
absl::Status CheckAliasing(const ReductionDesc& desc,
                           const ReductionOperands& operands,
                           const DisjointOperands& disjoint = {});
absl::Status CheckAliasing(const ContractionDesc& desc,
                           const ContractionOperands& operands,
                           const DisjointOperands& disjoint = {});

/// Results of a factorization may overlap nothing.
/// Errors    INVALID_ARGUMENT, reason OUTPUT_OVERLAPS_INPUT; OUTPUTS_OVERLAP:
///           each other.
absl::Status CheckAliasing(const FactorizationDesc& desc,
                           const FactorizationOperands& operands,
                           const DisjointOperands& disjoint = {});

/// d may overlap neither a nor b.
absl::Status CheckAliasing(const LinearSolveDesc& desc,
                           const LinearSolveOperands& operands,
                           const DisjointOperands& disjoint = {});

/// The same of any operation.
absl::Status CheckAnyAliasing(const AnyDesc& desc, const AnyOperands& operands,
                              const DisjointOperands& disjoint = {});

}  // namespace tensord::core
