#include "core/notation/path/partition.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <utility>

namespace tensord::core {
namespace {

/// Nodes of a hypergraph that is halved without making it coarser.
constexpr int kCoarse = 40;
/// Halves that are grown and refined of a coarse hypergraph.
constexpr int kStarts = 4;
constexpr int kPasses = 4;
/// Nodes of a net beyond which it says little about each of them.
constexpr size_t kCrowded = 50;

}  // namespace

/// Improves two sides by the algorithm of Fiduccia and Mattheyses: a pass moves
/// nodes over, each once and the one that gains most first, also where that is
/// a loss, and then goes back to the best state that it met.
class PartitionSearch::Refinement {
 public:
  Refinement(const Hypergraph& hypergraph, double imbalance,
             std::vector<bool>& sides)
      : hypergraph_(hypergraph),
        sides_(sides),
        counts_(hypergraph.pins.size()),
        gains_(hypergraph.node_count()) {
    for (int i = 0; i < hypergraph.node_count(); ++i) {
      side_weights_[sides[i]] += hypergraph.weights[i];
    }
    const int64_t total = side_weights_[0] + side_weights_[1];
    most_ = std::max<int64_t>(
        (total + 1) / 2,
        static_cast<int64_t>(static_cast<double>(total) / 2 * (1 + imbalance)));
    for (size_t net = 0; net < counts_.size(); ++net) {
      for (const int32_t node : hypergraph.pins[net]) {
        ++counts_[net][sides[node]];
      }
      if (counts_[net][0] > 0 && counts_[net][1] > 0) {
        cut_ += hypergraph.costs[net];
      }
    }
  }

  /// A few passes, while they help. Returns the cost of the nets that are cut.
  double Run() {
    for (int pass = 0; pass < kPasses; ++pass) {
      const double before = cut_;
      Pass();
      if (cut_ >= before - kLeastGain) break;
    }
    return cut_;
  }

 private:
  static constexpr double kLeastGain = 1e-9;

  void Pass() {
    const int node_count = hypergraph_.node_count();
    queue_ = {};
    is_moved_.assign(node_count, false);
    for (int32_t node = 0; node < node_count; ++node) {
      gains_[node] = GainOf(node);
      queue_.emplace(gains_[node], node);
    }
    std::vector<int32_t> moves;
    double best = cut_;
    size_t best_count = 0;
    const size_t patience = 30 + node_count / 8;
    while (!queue_.empty() && moves.size() < best_count + patience) {
      const auto [gain, node] = queue_.top();
      queue_.pop();
      if (is_moved_[node] || gain != gains_[node] || UpdateGain(node)) continue;
      if (side_weights_[!sides_[node]] + hypergraph_.weights[node] > most_) {
        continue;
      }
      is_moved_[node] = true;
      cut_ -= gain;
      Move(node);
      moves.push_back(node);
      if (cut_ < best - kLeastGain) {
        best = cut_;
        best_count = moves.size();
      }
      for (const int32_t net : hypergraph_.nets[node]) {
        // A move seldom changes gains through crowded nets.
        if (hypergraph_.pins[net].size() > kCrowded) continue;
        for (const int32_t other : hypergraph_.pins[net]) {
          if (!is_moved_[other]) UpdateGain(other);
        }
      }
    }
    for (; moves.size() > best_count; moves.pop_back()) Move(moves.back());
    cut_ = best;
  }

  /// By how much moving `node` lowers the cut.
  double GainOf(int32_t node) const {
    double gain = 0;
    for (const int32_t net : hypergraph_.nets[node]) {
      const int32_t here = counts_[net][sides_[node]];
      const int32_t there = counts_[net][!sides_[node]];
      if (there == 0 && here > 1) gain -= hypergraph_.costs[net];
      if (here == 1 && there > 0) gain += hypergraph_.costs[net];
    }
    return gain;
  }

  /// Queues `node` again if its gain has changed.
  bool UpdateGain(int32_t node) {
    const double gain = GainOf(node);
    if (gain == gains_[node]) return false;
    gains_[node] = gain;
    queue_.emplace(gain, node);
    return true;
  }

  void Move(int32_t node) {
    const bool from = sides_[node];
    side_weights_[from] -= hypergraph_.weights[node];
    side_weights_[!from] += hypergraph_.weights[node];
    for (const int32_t net : hypergraph_.nets[node]) {
      --counts_[net][from];
      ++counts_[net][!from];
    }
    sides_[node] = !from;
  }

  const Hypergraph& hypergraph_;
  std::vector<bool>& sides_;
  int64_t side_weights_[2] = {};
  int64_t most_ = 0;                            // weight of a side
  std::vector<std::array<int32_t, 2>> counts_;  // (net)(side) nodes
  double cut_ = 0;
  std::vector<double> gains_;  // (node) as last queued
  std::vector<bool> is_moved_;
  std::priority_queue<std::pair<double, int32_t>> queue_;
};

Steps PartitionSearch::Find(const PartitionWeights& weights, Random& random) {
  steps_.clear();
  nets_.assign(graph_.index_count(), -1);
  std::vector<int32_t> inputs(graph_.input_count());
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = static_cast<int32_t>(i);
  }
  Contract(inputs, weights, random);
  return steps_;
}

int32_t PartitionSearch::Contract(absl::Span<const int32_t> inputs,
                                  const PartitionWeights& weights,
                                  Random& random) {
  const auto input_count = static_cast<int32_t>(graph_.input_count());
  if (inputs.size() == 1) return inputs[0];
  if (static_cast<int>(inputs.size()) <= weights.small_part) {
    std::vector<const Legs*> legs;
    std::vector<int32_t> nodes(inputs.begin(), inputs.end());
    for (const int32_t input : inputs) legs.push_back(&graph_.inputs[input]);
    for (const auto& [a, b] : greedy_.Find(legs, {}, random)) {
      steps_.emplace_back(nodes[a], nodes[b]);
      nodes.push_back(input_count + static_cast<int32_t>(steps_.size()) - 1);
    }
    return nodes.back();
  }
  const std::vector<bool> sides =
      Halve(HypergraphOf(inputs), weights.imbalance, random);
  std::vector<int32_t> parts[2];
  for (size_t i = 0; i < inputs.size(); ++i) {
    parts[sides[i]].push_back(inputs[i]);
  }
  if (parts[0].empty() || parts[1].empty()) {
    const size_t half = inputs.size() / 2;
    parts[0].assign(inputs.begin(), inputs.begin() + half);
    parts[1].assign(inputs.begin() + half, inputs.end());
  }
  const int32_t a = Contract(parts[0], weights, random);
  const int32_t b = Contract(parts[1], weights, random);
  steps_.emplace_back(a, b);
  return input_count + static_cast<int32_t>(steps_.size()) - 1;
}

PartitionSearch::Hypergraph PartitionSearch::HypergraphOf(
    absl::Span<const int32_t> inputs) {
  Hypergraph hypergraph;
  hypergraph.weights.assign(inputs.size(), 1);
  hypergraph.nets.resize(inputs.size());
  std::vector<int32_t> met;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (const Leg& leg : graph_.inputs[inputs[i]]) {
      int32_t& net = nets_[leg.index];
      if (net < 0) {
        net = static_cast<int32_t>(hypergraph.pins.size());
        hypergraph.pins.emplace_back();
        // Even an index of one element is better not cut.
        hypergraph.costs.push_back(graph_.bits[leg.index] + 0.01);
        met.push_back(leg.index);
      }
      hypergraph.pins[net].push_back(static_cast<int32_t>(i));
      hypergraph.nets[i].push_back(net);
    }
  }
  for (const int32_t index : met) nets_[index] = -1;
  return hypergraph;
}

std::vector<bool> PartitionSearch::Halve(const Hypergraph& hypergraph,
                                         double imbalance,
                                         Random& random) const {
  if (hypergraph.node_count() > kCoarse) {
    const std::vector<int32_t> groups = MatchNodes(hypergraph, random);
    const int group_count = *std::ranges::max_element(groups) + 1;
    if (group_count < hypergraph.node_count() * 9 / 10) {
      const std::vector<bool> coarse =
          Halve(Merge(hypergraph, groups), imbalance, random);
      std::vector<bool> sides(groups.size());
      for (size_t i = 0; i < groups.size(); ++i) sides[i] = coarse[groups[i]];
      Refinement(hypergraph, imbalance, sides).Run();
      return sides;
    }
  }
  std::vector<bool> best;
  double least = std::numeric_limits<double>::infinity();
  for (int start = 0; start < kStarts; ++start) {
    std::vector<bool> sides = GrowHalf(hypergraph, random);
    const double cut = Refinement(hypergraph, imbalance, sides).Run();
    if (cut < least) {
      least = cut;
      best = std::move(sides);
    }
  }
  return best;
}

/// Pairs of neighbours that share much: the group of every node.
std::vector<int32_t> PartitionSearch::MatchNodes(const Hypergraph& hypergraph,
                                                 Random& random) {
  const int node_count = hypergraph.node_count();
  std::vector<int32_t> order(node_count), groups(node_count, -1);
  for (int i = 0; i < node_count; ++i) order[i] = i;
  for (int i = node_count - 1; i > 0; --i) {
    std::swap(order[i], order[random.Below(i + 1)]);
  }
  std::vector<double> shared(node_count);
  std::vector<int32_t> near;
  int32_t group_count = 0;
  for (const int32_t node : order) {
    if (groups[node] >= 0) continue;
    near.clear();
    for (const int32_t net : hypergraph.nets[node]) {
      const std::vector<int32_t>& pins = hypergraph.pins[net];
      if (pins.size() > kCrowded) continue;
      for (const int32_t other : pins) {
        if (other == node || groups[other] >= 0) continue;
        if (shared[other] == 0) near.push_back(other);
        shared[other] +=
            hypergraph.costs[net] / static_cast<double>(pins.size() - 1);
      }
    }
    int32_t partner = -1;
    double most = 0;
    for (const int32_t other : near) {
      const double rating = shared[other] / hypergraph.weights[other] *
                            (0.9 + 0.2 * random.Unit());
      shared[other] = 0;
      if (rating > most) {
        most = rating;
        partner = other;
      }
    }
    groups[node] = group_count;
    if (partner >= 0) groups[partner] = group_count;
    ++group_count;
  }
  return groups;
}

PartitionSearch::Hypergraph PartitionSearch::Merge(
    const Hypergraph& hypergraph, absl::Span<const int32_t> groups) {
  Hypergraph merged;
  const int group_count = *std::ranges::max_element(groups) + 1;
  merged.weights.resize(group_count);
  merged.nets.resize(group_count);
  for (int i = 0; i < hypergraph.node_count(); ++i) {
    merged.weights[groups[i]] += hypergraph.weights[i];
  }
  std::vector<int32_t> pins;
  for (size_t net = 0; net < hypergraph.pins.size(); ++net) {
    pins.clear();
    for (const int32_t node : hypergraph.pins[net]) {
      pins.push_back(groups[node]);
    }
    std::ranges::sort(pins);
    pins.erase(std::unique(pins.begin(), pins.end()), pins.end());
    if (pins.size() < 2) continue;
    for (const int32_t node : pins) {
      merged.nets[node].push_back(static_cast<int32_t>(merged.pins.size()));
    }
    merged.pins.push_back(pins);
    merged.costs.push_back(hypergraph.costs[net]);
  }
  return merged;
}

/// Goes from a node to its neighbours until half of the weight is together.
std::vector<bool> PartitionSearch::GrowHalf(const Hypergraph& hypergraph,
                                            Random& random) {
  const int node_count = hypergraph.node_count();
  int64_t left = 0;
  for (const int32_t weight : hypergraph.weights) left += weight;
  left /= 2;
  std::vector<bool> sides(node_count), is_open(node_count);
  std::vector<int32_t> open;
  while (left > 0) {
    if (open.empty()) {
      int32_t node = random.Below(node_count);
      while (is_open[node]) node = (node + 1) % node_count;
      open.push_back(node);
      is_open[node] = true;
    }
    // Breadth first, but not strictly.
    const int place =
        random.Below(std::min<int>(3, static_cast<int>(open.size())));
    const int32_t node = open[place];
    open.erase(open.begin() + place);
    sides[node] = true;
    left -= hypergraph.weights[node];
    for (const int32_t net : hypergraph.nets[node]) {
      for (const int32_t other : hypergraph.pins[net]) {
        if (is_open[other]) continue;
        is_open[other] = true;
        open.push_back(other);
      }
    }
  }
  return sides;
}

}  // namespace tensord::core
