// Views as steps for a kernel.
#pragma once

#include "absl/status/statusor.h"
#include "core/base/layout.h"
#include "core/view/gather_steps.h"
#include "core/view/view.h"

namespace tensord::core {

/// The steps that find the elements of `view` by linear index, which counts
/// through its modes in `order`. For any view, also a strided one.
///
/// Post    Locate(result, i) is what view.Locate() gives for the indices that
///         i stands for.
/// Errors  UNIMPLEMENTED, VIEW_TOO_COMPLEX: more steps or terms than
///         GatherSteps holds. Make them when a view is accepted, not when it
///         is read.
absl::StatusOr<GatherSteps> MakeGatherSteps(const View& view, Order order);

}  // namespace tensord::core
