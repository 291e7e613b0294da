// Kernels for problems of any size, made of kernels for problems up to a size.
#pragma once

#include <cstdint>

#include "core/backend/backend.h"
#include "core/backend/cuda/kernel/index_space.h"

namespace tensord::core::cuda {

/// The kernels of `lists` under their names. All but the last of each list then
/// take problems of more than `limit` elements, too: these run in parts, which
/// the kernel itself takes, one after the other on the stream.
///
///   elements of d         divided along a slow mode of d, or several
///   terms of a reduction  divided along a slow mode of a into parts whose
///   or contraction        results go to workspace; the first kernel of the
///                         list of reductions then makes d of them, in an order
///                         that follows from the problem
///
/// Such a kernel divides a problem once and solves each different part. It
/// declines when a part is declined, needs the workspace of the largest part
/// and is predicted to take the time of all. Problems within the limit are
/// passed on as they are.
///
/// Requires  lists.reduction is not empty; limit >= 1.
/// Errors    Solve() also: UNIMPLEMENTED: there would be more than 4096
///           parts; or a contraction has more than `limit` terms an element
///           and elements of 16 bits, to which partial sums would be rounded.
KernelLists InParts(KernelLists lists, int64_t limit = kMaxPart);

}  // namespace tensord::core::cuda
