// Simulated annealing of a tree together with what is sliced.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "core/notation/path/deadline.h"
#include "core/notation/path/network.h"
#include "core/notation/path/random.h"

namespace tensord::core {

/// How hot annealing begins and ends, in factors of two of the flops.
struct Cooling {
  int sweep_count = 0;
  double hottest = 1;
  double coldest = 0.02;
};

/// A tree and the indices that are sliced, changed in turn: the tree is turned
/// about single edges, and slices are exchanged. What counts is the flops of
/// all slices, and no result of a step may be larger than a limit.
///
/// Indices are bits of words, so that a turn takes a fraction of a microsecond.
///
/// Threads   one at a time.
/// Lifetime  the network must outlive it.
class SliceAnnealer {
 public:
  /// `max_bits` is log2 of the most elements of a result of a step.
  SliceAnnealer(const Network& network, double max_bits);

  /// Takes a tree with its slices, and slices more until it keeps to the limit.
  void Load(const ContractionTree& tree, absl::Span<const int32_t> sliced,
            Random& random);

  /// Turns the tree `cooling.sweep_count` times everywhere, accepts dearer
  /// trees less and less, and keeps the best.
  /// Post  Bits() is not higher than before.
  void Anneal(const Cooling& cooling, Random& random, const Deadline& deadline);

  bool is_limited() const {
    return max_bits_ < std::numeric_limits<double>::infinity();
  }
  /// Whether every result keeps to the limit; false only where slicing all
  /// there is does not help.
  bool fits() const { return fits_; }
  /// log2 of the flops of all slices.
  double Bits() const;
  ContractionTree tree() const;
  std::vector<int32_t> sliced() const;  // ascending

 private:
  using Word = uint64_t;

  struct Node {
    int32_t left = -1;  // -1 of inputs
    int32_t right = -1;
    double bits = 0;   // log2 of the elements of a slice
    double score = 0;  // flops of the step that makes it, of a slice
  };

  struct State {
    std::vector<Node> nodes;
    std::vector<Word> legs;    // (node)(word), also those that are sliced
    std::vector<Word> active;  // (word) indices that are not sliced
    double slice_bits = 0;     // log2 of the slices
  };

  void NumberIndices();
  const Word* LegsOf(int32_t node) const {
    return state_.legs.data() + static_cast<size_t>(node) * word_count_;
  }
  bool IsActive(int32_t bit) const {
    return (state_.active[bit / 64] >> (bit % 64) & 1) != 0;
  }
  void Toggle(int32_t bit);
  double WeightOf(int32_t bit) const { return weights_[bit / 64]; }
  /// Sizes and scores of all nodes.
  void Measure();
  void TurnAt(int32_t top, double temperature, Random& random);
  /// Slices until all results fit; `noise` makes other choices likely.
  void Fit(double noise, Random& random);
  /// Takes back slices that are not needed.
  void TakeBack();
  int32_t ChooseSlice(double noise, Random& random);
  void ExchangeSlices(double temperature, Random& random);

  const Network& network_;
  const double max_bits_;
  int word_count_ = 0;
  std::vector<double> weights_;   // (word) log2 of the extents of its indices
  std::vector<int32_t> indices_;  // (bit) of the network; -1: none
  std::vector<Word> input_legs_;  // (input)(word)
  State state_, best_;
  double total_ = 0;  // of all scores
  bool fits_ = false;
  std::vector<double> shares_, covers_;  // (bit) scratch
};

}  // namespace tensord::core
