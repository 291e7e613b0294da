// A product of tensors that share indices, and the trees that contract it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace tensord::core {

/// A product of tensors as a hypergraph: an index may occur in any number of
/// them, and is summed unless the output has it.
struct Network {
  /// Numbers of indices, from 0.
  using Indices = absl::InlinedVector<int32_t, 8>;

  std::vector<Indices> inputs;   // (tensor)(mode), distinct within a tensor
  Indices output;                // (mode), distinct, each in some input
  std::vector<int64_t> extents;  // (index), 1 or more
};

/// Pairs of nodes in the order in which they are contracted. Inputs are nodes 0
/// to n - 1, the result of step i is node n + i; each node but the last is used
/// once.
///
/// Invariant  n - 1 steps; none for a single input.
struct ContractionTree {
  std::vector<std::pair<int32_t, int32_t>> steps;

  bool operator==(const ContractionTree&) const = default;
};

/// What a tree costs.
///
/// Units  elements and operations on elements, as doubles: they may be huge.
struct TreeCost {
  /// For every step the product of the extents of all its indices, twice when
  /// it sums over any, as opt_einsum counts; and for every input with indices
  /// of its own, of more than one element, its elements once, to sum those away
  /// first.
  double flops = 0;
  double largest = 0;  // elements of the largest result of a step
  /// Most elements of results of steps that are alive at a time, with the
  /// result of the running step, when steps run in their order.
  double peak = 0;
  double written = 0;  // elements of all results of steps
};

/// The cost of `tree` when the indices in `sliced` are fixed. Flops and written
/// are those of all slices, with the operations that add the slices up where a
/// summed index is sliced. The others are those of one slice, whose last step
/// writes into the whole result, which is alive from the first step on.
///
/// Inputs do not count, also not those whose own indices were summed away.
/// Requires  `tree` belongs to `network`; `sliced` are distinct.
TreeCost CostOf(const Network& network, const ContractionTree& tree,
                absl::Span<const int32_t> sliced = {});

/// The indices that the result of every step keeps: those of its inputs that
/// the output or a node outside has; (step)(mode), ascending.
std::vector<Network::Indices> ResultsOf(const Network& network,
                                        const ContractionTree& tree);

}  // namespace tensord::core
