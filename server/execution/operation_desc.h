// The Descs that requests amount to.
#pragma once

#include "absl/status/statusor.h"
#include "core/ops/any_desc.h"
#include "core/tensor/tensor.h"
#include "server/execution/operation_request.h"
#include "server/session/filling.h"

namespace tensord::server {

/// What there is in d besides the result.
struct OutputFrame {
  int64_t result_offset = 0;  // elements, from d's first
  Filling filling;            // of d, before the result is written
};

struct OperationDesc {
  core::AnyDesc desc;                   // valid; its d is the result
  PerResult<core::TensorDesc> results;  // also when they are new
  OutputFrame frame;
};

/// The Desc of `request` on `tensors`, with all that was left out filled in.
///
/// A new d gets the extents of the inputs, c's element type or else the widest
/// of a and b, and a packed layout, which has room for padding. An input that
/// is not read and was left out is replaced by one that fits.
///
/// Errors  INVALID_ARGUMENT: an input that is read was left out, the extent of
///         a mode of d is not known, a factor does not fit the types, padding
///         that d has no room for or whose value it does not have, and all that
///         Validate() refuses. UNIMPLEMENTED: no row of the type table.
absl::StatusOr<OperationDesc> MakeDesc(const OperationRequest& request,
                                       const OperationTensors& tensors);

// The same, operation by operation.
using MakeOneDesc = absl::StatusOr<OperationDesc>(
    const OperationRequest& request, const OperationTensors& tensors);
MakeOneDesc MakePermutation, MakeElementwise, MakeReduction, MakeContraction,
    MakeFactorization, MakeLinearSolve;

}  // namespace tensord::server
