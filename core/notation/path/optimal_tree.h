// The cheapest tree of few nodes, by dynamic programming over their sets.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/notation/path/find_path.h"
#include "core/notation/path/search_graph.h"
#include "core/notation/path/search_tree.h"

namespace tensord::core {

/// Searches all binary trees of up to kOptimalInputLimit nodes.
///
/// Threads  one at a time; keeps its tables for the next search.
class OptimalSearch {
 public:
  /// The steps of the tree with the least sum of ScoreOf() of its joins, nodes
  /// numbered as in ContractionTree with `leaves` as inputs; none when that sum
  /// is not below `bound`.
  /// Requires  2 to kOptimalInputLimit leaves, none of which contains another.
  Steps Find(const SearchGraph& graph, absl::Span<const Legs* const> leaves,
             double bound);

 private:
  using Set = uint32_t;  // of leaves

  /// An index of three and more leaves, or of two and one outside.
  struct Hyper {
    Set leaves = 0;
    bool is_outside = false;
    double bits = 0;
  };

  struct Incidence {
    Set leaves = 0;
    int32_t count = 0;
  };

  struct Measure {
    double cost = 0;  // of the best tree
    double root = 0;  // square root of the elements
  };

  /// The set that is being split.
  struct Target {
    Set set = 0;
    bool sums_always = false;
    double size = 0;
    double best = 0;  // of parts and step
    double root = 0;  // of the elements, twice when it sums always
    Set split = 0;
  };

  void ReadLegs(const SearchGraph& graph, absl::Span<const Legs* const> leaves);
  void AddShared(const SearchGraph& graph, int32_t index, Set leaves);
  void FillHyperTables();
  void MeasureSets();
  void FindOpenHypers();
  double HyperSize(const uint64_t* set) const;
  bool SumsInEverySplit(Set set) const;
  void SearchSets(double bound);
  template <bool has_hypers>
  void SearchSplits(Target& target) const;
  template <bool has_hypers>
  bool MayBeBetter(const Target& target, Set a, Set b) const;
  void Try(Target& target, Set a, Set b) const;
  double FlopsOf(const Target& target, Set a, Set b) const;

  int leaf_count_ = 0;
  int word_count_ = 0;                // of a set of hyperindices
  std::vector<Incidence> incidence_;  // (index)
  std::vector<int32_t> met_;          // indices of the leaves
  std::vector<double> pair_bits_;     // (leaf)(leaf) of indices of just those
  std::vector<double> leaf_bits_;     // (leaf) of indices of at most two leaves
  std::vector<Set> neighbours_;       // (leaf) that share such an index
  std::vector<Hyper> hypers_;
  std::vector<double> hyper_tables_;     // (byte of a set)(its bits)
  std::vector<std::vector<Set>> alive_;  // (lowest leaf) sets with a cost

  // By set of leaves.
  std::vector<double> bits_;  // of the elements, without hyperindices
  std::vector<Measure> measures_;
  std::vector<double> simple_roots_;  // without hyperindices
  std::vector<double> hyper_roots_;   // of hyperindices alone
  std::vector<Set> adjacent_;  // leaves that share a simple index with it
  std::vector<Set> splits_;
  std::vector<uint64_t> touched_;  // (set)(word) hyperindices of its leaves
  std::vector<uint64_t> open_;     // (set)(word) those that it keeps
};

}  // namespace tensord::core
