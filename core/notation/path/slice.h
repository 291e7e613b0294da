// Fixing indices so that results are small.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/notation/path/deadline.h"
#include "core/notation/path/find_path.h"
#include "core/notation/path/network.h"
#include "core/notation/path/random.h"

namespace tensord::core {

/// A tree, its steps in the order that has the least peak, and what is sliced.
struct SlicedTree {
  ContractionTree tree;
  std::vector<int32_t> sliced;  // indices, ascending
  TreeCost cost;
};

/// What a tree and its slices have to keep to, in elements.
struct SizeLimits {
  double peak = std::numeric_limits<double>::infinity();     // TreeCost::peak
  double largest = std::numeric_limits<double>::infinity();  // of a result

  bool Allow(const TreeCost& cost) const {
    return cost.peak <= peak && cost.largest <= largest;
  }
};

inline constexpr char kLeastPeak[] = "tensord/least_peak";

/// Slices one index after the other until the peak is within `max_peak`, each
/// time the one that adds the fewest flops for what it takes off the peak; then
/// takes back what was not needed. `noise` makes other choices likely.
///
/// Post  cost.peak <= max_peak unless nothing more can be sliced.
SlicedTree SliceGreedily(const Network& network, const ContractionTree& tree,
                         double max_peak, double noise, Random& random);

/// `tree` with its steps in the order that has the least peak, and its cost.
SlicedTree WithSlices(const Network& network, const ContractionTree& tree,
                      std::vector<int32_t> sliced);

/// As SliceGreedily(), of a tree of which some is sliced.
SlicedTree SliceOn(const Network& network, SlicedTree tree, double max_peak,
                   double noise, Random& random);

/// Mends the tree part by part, after some sweeps of annealing, with what is
/// sliced fixed; results may grow.
SlicedTree MendSliced(const Network& network, const SlicedTree& tree,
                      int anneal_sweeps, Random& random,
                      const Deadline& deadline);

/// The cheapest of many slicings of `tree`, and of trees mended while they are
/// sliced.
/// Errors  RESOURCE_EXHAUSTED, reason PATH_MEMORY_LIMIT; its payload kLeastPeak
///         is the least peak that was found, in elements.
absl::StatusOr<SlicedTree> FindSlices(const Network& network,
                                      const ContractionTree& tree,
                                      double max_peak, Random& random,
                                      const Deadline& deadline);

}  // namespace tensord::core
