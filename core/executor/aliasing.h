// Which operands may share memory.
#pragma once

#include "absl/status/status.h"
#include "core/backend/kernel.h"
#include "core/executor/executor.h"
#include "core/ops/any_desc.h"

namespace tensord::core {

/// Inputs of which it is known that they share no element with d.
struct DisjointFromOutput {
  bool a = false;
  bool b = false;
  bool c = false;
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
                           DisjointFromOutput disjoint = {});
absl::Status CheckAliasing(const ElementwiseDesc& desc,
                           const ElementwiseOperands& operands,
                           DisjointFromOutput disjoint = {});
absl::Status CheckAliasing(const ReductionDesc& desc,
                           const ReductionOperands& operands,
                           DisjointFromOutput disjoint = {});
absl::Status CheckAliasing(const ContractionDesc& desc,
                           const ContractionOperands& operands,
                           DisjointFromOutput disjoint = {});

/// Of a factorization q and r may overlap nothing, each other neither.
absl::Status CheckAliasing(const FactorizationDesc& desc,
                           const FactorizationOperands& operands,
                           DisjointFromOutput disjoint = {});
/// The same of any operation.
absl::Status CheckAnyAliasing(const AnyDesc& desc, const AnyOperands& operands,
                              DisjointFromOutput disjoint = {});

}  // namespace tensord::core
