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
  /// Until when slices may be searched.
  const Deadline& slicing_deadline() const { return slicing_deadline_; }

 private:
  void FindGreedily();
  void FindOptimal();
  void FindAtRandom();
  absl::Duration Budget() const;
  /// Keeps `tree` when it is the best so far.
  void Offer(SearchTree tree, PathMethod method);
  SearchTree TryGreedily(int trial_count);
  SearchTree TryPartition();

  const PathOptions options_;
  const SearchGraph graph_;
  Random random_;
  Deadline deadline_, slicing_deadline_;
  GreedySearch greedy_;
  PartitionSearch partition_;
  Mender mender_;
  SearchTree best_;
  double best_score_;
  PathMethod best_method_;
  int64_t tried_count_ = 0;
};

}  // namespace tensord::core
