// The search for a tree, method by method, within its time.
#pragma once

#include <cstdint>

#include "core/notation/path/deadline.h"
#include "core/notation/path/find_path.h"
#include "core/notation/path/greedy.h"
#include "core/notation/path/mend.h"
#include "core/notation/path/network.h"
#include "core/notation/path/partition.h"
#include "core/notation/path/random.h"
#include "core/notation/path/search_graph.h"
#include "core/notation/path/search_tree.h"

namespace tensord::core {

/// Lifetime  the network must outlive it.
class PathSearch {
 public:
  PathSearch(const Network& network, const PathOptions& options);

  /// The best tree; steps and cost are as the search left them.
  Path Find();

  Random& random() { return random_; }
  /// When that share of the time for slices is over. Requires a Find() before.
  Deadline SlicingDeadline(double share) const;

 private:
  void FindGreedily();
  void FindOptimal();
  void FindAtRandom();
  /// For a tree; and as much for its slices or, of a time that is given, the
  /// rest.
  absl::Duration Budget() const;
  /// Keeps `tree` when it is the best so far.
  void Offer(SearchTree tree, PathMethod method);
  SearchTree TryGreedily(int trial_count);
  SearchTree TryPartition();

  const PathOptions options_;
  const SearchGraph graph_;
  Random random_;
  const Deadline::Clock::time_point begun_ = Deadline::Clock::now();
  Deadline::Clock::time_point found_;  // when the tree was
  Deadline deadline_;
  GreedySearch greedy_;
  PartitionSearch partition_;
  Mender mender_;
  SearchTree best_;
  double best_score_;
  PathMethod best_method_;
  int64_t tried_count_ = 0;
};

}  // namespace tensord::core
