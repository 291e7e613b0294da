// Making a tree better by looking at parts of it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/notation/path/deadline.h"
#include "core/notation/path/optimal_tree.h"
#include "core/notation/path/random.h"
#include "core/notation/path/search_graph.h"
#include "core/notation/path/search_tree.h"

namespace tensord::core {

/// Threads   one at a time.
/// Lifetime  the graph must outlive it.
class Mender {
 public:
  explicit Mender(const SearchGraph& graph) : graph_(graph) {}

  /// Replaces connected parts of up to `leaf_limit` leaves by their cheapest
  /// tree, below every node in turn; `random`, if given, chooses the parts.
  /// Returns whether anything changed.
  /// Post  the score is not higher than before.
  bool Sweep(SearchTree& tree, int leaf_limit, Random* random,
             const Deadline& deadline);

  /// Sweeps until nothing changes, then with random parts as often as
  /// `patience` says without a change.
  void Mend(SearchTree& tree, int leaf_limit, int patience, Random& random,
            const Deadline& deadline);

  /// Simulated annealing: turns the tree about single edges, `sweep_count`
  /// times everywhere, accepts dearer trees less and less, and keeps the best.
  /// Post  the score is not higher than before.
  void Anneal(SearchTree& tree, int sweep_count, double hottest, double coldest,
              Random& random, const Deadline& deadline);

 private:
  bool MendBelow(SearchTree& tree, int32_t top, int leaf_limit, Random* random);
  void TurnAt(SearchTree& tree, int32_t top, double temperature,
              Random& random);

  const SearchGraph& graph_;
  OptimalSearch optimal_;
  Legs scratch_;
  std::vector<int32_t> frontier_, inner_;
  std::vector<const Legs*> leaves_;
  std::vector<int32_t> numbers_;
};

}  // namespace tensord::core
