// In which order the steps of a tree run.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "core/notation/path/network.h"

namespace tensord::core {

/// The same tree with steps in the order, one branch after the other, that has
/// the least peak.
ContractionTree OrderForPeak(const Network& network,
                             const ContractionTree& tree,
                             absl::Span<const int32_t> sliced = {});

}  // namespace tensord::core
