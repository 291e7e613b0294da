// In which order the modes of intermediate results are stored.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "core/notation/path/network.h"

namespace tensord::core {

/// An order of modes for every node of `tree`, fastest first, so that
/// contractions are products of matrices without copies: what a node sums with
/// its partner lies together, in the order of the partner, and what it keeps in
/// the order of the result.
///
/// `fixed` gives the orders of inputs, (input)(mode), an empty one where the
/// order is free; `output` is the last result's.
std::vector<Network::Indices> ModeOrders(
    const Network& network, const ContractionTree& tree,
    absl::Span<const Network::Indices> fixed, const Network::Indices& output);

}  // namespace tensord::core
