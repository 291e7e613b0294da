// The search for a tree together with its slices, by annealing many trees.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/notation/path/deadline.h"
#include "core/notation/path/network.h"
#include "core/notation/path/random.h"
#include "core/notation/path/search_graph.h"
#include "core/notation/path/slice.h"
#include "core/notation/path/sliced/anneal.h"

namespace tensord::core {

struct AnnealOptions {
  SizeLimits limits;
  uint64_t seed = 0;
  int thread_count = 1;
  std::atomic<int64_t>* helper_nanoseconds = nullptr;  // see PathOptions
};

/// Anneals new trees, keeps the best few, and anneals those again, fewer and
/// fewer; then begins anew with twice as many, until that was long in vain.
/// What it finds does not depend on the number of threads unless the time runs
/// out.
///
/// Lifetime  the network must outlive it.
class AnnealSearch {
 public:
  AnnealSearch(const Network& network, const AnnealOptions& options);

  /// The best tree, `start` if none is better; also of networks of more than
  /// about ten thousand inputs, which are not searched.
  /// Post  keeps to the limits if `start` does, or if any was found that does.
  SlicedTree Find(SlicedTree start, const Deadline& deadline);

  /// Whether `a` is cheaper, or nearer to the limits.
  bool IsBetter(const SlicedTree& a, const SlicedTree& b) const;

  int64_t tried_count() const { return tried_count_; }

 private:
  /// Of round `round`: a new tree, or `from` annealed again.
  SlicedTree RunRound(int64_t round, const SlicedTree* from,
                      const Deadline& deadline) const;
  /// For results that leave `slack` factors of two of the peak to others.
  SliceAnnealer NewAnnealer(double slack) const;
  SlicedTree Finish(const SliceAnnealer& annealer, Random& random) const;
  ContractionTree NewTree(bool cuts, Random& random) const;
  void Renew(int count, const Deadline& deadline);
  void AnnealAgain(int count, const Deadline& deadline);
  /// The best first, and the rest away.
  void SortPool();
  /// Runs a round for each of `from`, on all threads.
  std::vector<SlicedTree> RunRounds(const std::vector<const SlicedTree*>& from,
                                    const Deadline& deadline);
  void Polish(const Deadline& deadline);

  const Network& network_;
  const AnnealOptions options_;
  const SearchGraph graph_;
  double whole_ = 1;  // elements of the output
  SlicedTree best_;
  std::vector<SlicedTree> pool_;  // the best first
  int64_t round_ = 0;
  int64_t tried_count_ = 0;
};

}  // namespace tensord::core
