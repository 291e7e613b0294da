// Trees by contracting the most promising pair first.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/notation/path/random.h"
#include "core/notation/path/search_graph.h"
#include "core/notation/path/search_tree.h"

namespace tensord::core {

/// The pair with the least (size of the result - alpha * sizes of the two) goes
/// first; at a temperature not the least, but likely one of the least.
struct GreedyWeights {
  double alpha = 1;
  double temperature = 0;
};

/// Threads   one at a time; keeps its tables for the next search.
/// Lifetime  the graph must outlive it.
class GreedySearch {
 public:
  explicit GreedySearch(const SearchGraph& graph) : graph_(graph) {}

  /// The steps of a tree of the graph; none when their score comes to `bound`.
  Steps Find(const GreedyWeights& weights, Random& random,
             double bound = std::numeric_limits<double>::infinity());

  /// As Find(), of nodes with those legs in place of the inputs.
  Steps Find(absl::Span<const Legs* const> inputs, const GreedyWeights& weights,
             Random& random,
             double bound = std::numeric_limits<double>::infinity());

  double score() const { return score_; }  // of the last tree

 private:
  struct Candidate {
    double key;
    int32_t a, b;

    /// For a heap with the least on top.
    bool operator<(const Candidate& other) const {
      if (key != other.key) return key > other.key;
      return a != other.a ? a > other.a : b > other.b;
    }
  };

  void Add(const GreedyWeights& weights, Random& random, int32_t a, int32_t b);
  void AddPairs(const GreedyWeights& weights, Random& random);
  void AddPairsOf(const GreedyWeights& weights, Random& random, int32_t node);
  void Contract(int32_t a, int32_t b);
  void ContractRest();

  const SearchGraph& graph_;
  double score_ = 0;
  Steps steps_;
  // By node.
  std::vector<Legs> legs_;
  std::vector<double> bits_;
  std::vector<double> sizes_;
  std::vector<bool> is_alive_;
  std::vector<int32_t> seen_from_;  // the node that last met it

  std::vector<std::vector<int32_t>> holders_;  // (index) nodes alive with it
  std::vector<Candidate> heap_;
};

}  // namespace tensord::core
