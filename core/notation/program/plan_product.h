// In which order a product is contracted, and how its intermediate results lie.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/notation/program/bind.h"
#include "core/notation/program/lower.h"
#include "core/notation/program/program.h"

namespace tensord::core {

/// Indices by their stride in `tensor`, the smallest first.
Modes ByStride(const IndexedTensor& tensor);

struct PlannedProduct {
  ProgramProduct product;        // but for its statement
  std::vector<Modes> orders;     // (node): its modes, fastest first
  Modes sliced;                  // those of the result first
  int32_t kept_slice_count = 0;  // of them
};

/// How the product of `term`, of two factors or more, is contracted into d.
/// When `options` takes over another program's paths, it is that of the same
/// term, if there is one.
///
/// Errors  those of FindPath() and TreeFromPositions().
absl::StatusOr<PlannedProduct> PlanProduct(const IndexedTensor& d,
                                           const BoundTerm& term,
                                           const Bindings& bindings,
                                           const LoweringOptions& options,
                                           double max_peak_bytes);

}  // namespace tensord::core
