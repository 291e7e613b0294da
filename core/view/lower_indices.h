// Transforms as sums of indices.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "core/view/index_domain.h"
#include "core/view/stage.h"

namespace tensord::core {

/// The index of each lower mode of `placed`, as a sum over the upper modes,
/// whose indices `domain` has.
///
/// Requires  UpperExtents() accepts the stage for these lower extents, those
///           of the modes that `placed` names.
std::vector<IndexSum> LowerIndices(const PlacedTransform& placed,
                                   absl::Span<const int64_t> lower_extents,
                                   IndexDomain& domain);

}  // namespace tensord::core
