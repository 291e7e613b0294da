// Kernels for problems of any size, made of kernels for problems up to a size.
#pragma once

#include <cstdint>

#include "core/backend/backend.h"
#include "core/backend/cuda/kernel/index_space.h"

namespace tensord::core::cuda {

/// What is done in parts.
struct PartLimits {
  /// Problems of more elements.
  int64_t elements = kMaxPart;
  /// Problems that are predicted to take longer, in parts of about a quarter of
  /// that: between two of them the work can be stopped.
  double nanoseconds = 20e6;
};

/// The kernels of `lists` under their names. All but the last of each list then
/// take problems of more than `limits.elements`, too: these run in parts, which
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
/// All kernels do what takes longer than `limits.nanoseconds` in parts, where
/// that is possible and costs little: elements of d are divided or, where those
/// are few, terms. The last of a list, which is to need no workspace, divides
/// elements alone.
///
/// Launching is ahead of the stream by a bounded time, where somebody may ask
/// the work to stop: it then ends, CANCELLED, when the parts have that are
/// queued.
///
/// Requires  lists.reduction is not empty; limits.elements >= 1.
/// Errors    Solve() also: UNIMPLEMENTED: there would be more than 4096
///           parts; or a contraction has more than `limits.elements` terms an
///           element and elements of 16 bits, to which partial sums would be
///           rounded.
KernelLists InParts(KernelLists lists, const PartLimits& limits = {});

}  // namespace tensord::core::cuda
