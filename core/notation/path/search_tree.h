// A contraction tree that searches change in place.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/notation/path/network.h"
#include "core/notation/path/search_graph.h"

namespace tensord::core {

/// Invariant  nodes 0 to n - 1 are the inputs, the last is the root; children
///            of a node may have higher numbers than it.
struct SearchTree {
  struct Node {
    int32_t left = -1;  // -1 of inputs
    int32_t right = -1;
    int32_t parent = -1;  // -1 of the root
    double bits = 0;      // log2 of its elements
    double score = 0;     // of the step that makes it; see ScoreOf()
    Legs legs;

    bool is_input() const { return left < 0; }
  };

  std::vector<Node> nodes;

  int input_count() const { return static_cast<int>(nodes.size() + 1) / 2; }
  int32_t root() const { return static_cast<int32_t>(nodes.size()) - 1; }

  /// The sum of all nodes.
  double Score() const;
};

using Steps = std::vector<std::pair<int32_t, int32_t>>;

/// Requires  `steps` are those of a ContractionTree of the graph.
SearchTree TreeOf(const SearchGraph& graph,
                  absl::Span<const Steps::value_type> steps);

/// Writes children, legs, size and score of the node `parent`.
void SetChildren(const SearchGraph& graph, SearchTree& tree, int32_t parent,
                 int32_t left, int32_t right);

/// The nodes that are no inputs, children first.
std::vector<int32_t> PostorderOf(const SearchTree& tree);

ContractionTree ContractionTreeOf(const SearchTree& tree);

}  // namespace tensord::core
