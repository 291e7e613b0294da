// Trees by cutting the network in two, and each part again.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/notation/path/greedy.h"
#include "core/notation/path/random.h"
#include "core/notation/path/search_graph.h"
#include "core/notation/path/search_tree.h"

namespace tensord::core {

struct PartitionWeights {
  double imbalance = 0.2;  // by how much of a half a part may be larger
  int small_part = 8;      // inputs of parts that are contracted greedily
};

/// Threads   one at a time.
/// Lifetime  the graph must outlive it.
class PartitionSearch {
 public:
  explicit PartitionSearch(const SearchGraph& graph)
      : graph_(graph), greedy_(graph) {}

  /// The steps of a tree of the graph.
  Steps Find(const PartitionWeights& weights, Random& random);

 private:
  class Refinement;
  /// Nodes to be told apart, and nets: the indices that they share.
  struct Hypergraph {
    std::vector<int32_t> weights;            // (node) inputs in it
    std::vector<std::vector<int32_t>> nets;  // (node)
    std::vector<std::vector<int32_t>> pins;  // (net) nodes
    std::vector<double> costs;               // (net)

    int node_count() const { return static_cast<int>(weights.size()); }
  };

  int32_t Contract(absl::Span<const int32_t> inputs,
                   const PartitionWeights& weights, Random& random);
  Hypergraph HypergraphOf(absl::Span<const int32_t> inputs);
  std::vector<bool> Halve(const Hypergraph& hypergraph, double imbalance,
                          Random& random) const;
  static std::vector<int32_t> MatchNodes(const Hypergraph& hypergraph,
                                         Random& random);
  static Hypergraph Merge(const Hypergraph& hypergraph,
                          absl::Span<const int32_t> groups);
  static std::vector<bool> GrowHalf(const Hypergraph& hypergraph,
                                    Random& random);

  const SearchGraph& graph_;
  GreedySearch greedy_;
  Steps steps_;
  std::vector<int32_t> nets_;  // (index) its net in the part at hand, or -1
};

}  // namespace tensord::core
