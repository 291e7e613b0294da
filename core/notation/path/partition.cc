#include "core/notation/path/partition.h"

#include <algorithm>
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

}  // namespace

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
      Refine(hypergraph, imbalance, sides);
      return sides;
    }
  }
  std::vector<bool> best;
  double least = std::numeric_limits<double>::infinity();
  for (int start = 0; start < kStarts; ++start) {
    std::vector<bool> sides = GrowHalf(hypergraph, random);
    const double cut = Refine(hypergraph, imbalance, sides);
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
      if (pins.size() > 50) continue;
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

/// Moves nodes over, the best first and each once, and keeps the best of all
/// that was met; several times. Returns the cost of the nets that are cut.
double PartitionSearch::Refine(const Hypergraph& hypergraph, double imbalance,
                               std::vector<bool>& sides) {
  const int node_count = hypergraph.node_count();
  int64_t total = 0, weights[2] = {};
  for (int i = 0; i < node_count; ++i) {
    total += hypergraph.weights[i];
    weights[sides[i]] += hypergraph.weights[i];
  }
  const auto most = std::max<int64_t>(
      (total + 1) / 2,
      static_cast<int64_t>(static_cast<double>(total) / 2 * (1 + imbalance)));
  std::vector<std::pair<int32_t, int32_t>> counts(hypergraph.pins.size());
  double cut = 0;
  for (size_t net = 0; net < counts.size(); ++net) {
    for (const int32_t node : hypergraph.pins[net]) {
      ++(sides[node] ? counts[net].second : counts[net].first);
    }
    if (counts[net].first > 0 && counts[net].second > 0) {
      cut += hypergraph.costs[net];
    }
  }
  const auto gain_of = [&](int32_t node) {
    double gain = 0;
    for (const int32_t net : hypergraph.nets[node]) {
      auto [here, there] = counts[net];
      if (sides[node]) std::swap(here, there);
      if (there == 0 && here > 1) gain -= hypergraph.costs[net];
      if (here == 1 && there > 0) gain += hypergraph.costs[net];
    }
    return gain;
  };
  std::vector<double> gains(node_count);
  std::vector<bool> is_moved;
  std::vector<int32_t> moves;
  const auto move = [&](int32_t node) {
    weights[sides[node]] -= hypergraph.weights[node];
    weights[!sides[node]] += hypergraph.weights[node];
    for (const int32_t net : hypergraph.nets[node]) {
      auto& [left, right] = counts[net];
      left += sides[node] ? 1 : -1;
      right += sides[node] ? -1 : 1;
    }
    sides[node] = !sides[node];
  };
  for (int pass = 0; pass < kPasses; ++pass) {
    std::priority_queue<std::pair<double, int32_t>> queue;
    is_moved.assign(node_count, false);
    moves.clear();
    for (int32_t node = 0; node < node_count; ++node) {
      gains[node] = gain_of(node);
      queue.emplace(gains[node], node);
    }
    const double before = cut;
    double best = cut;
    size_t best_count = 0;
    const size_t patience = 30 + node_count / 8;
    while (!queue.empty() && moves.size() < best_count + patience) {
      const auto [gain, node] = queue.top();
      queue.pop();
      if (is_moved[node] || gain != gains[node]) continue;
      if (const double now = gain_of(node); now != gain) {
        gains[node] = now;
        queue.emplace(now, node);
        continue;
      }
      if (weights[!sides[node]] + hypergraph.weights[node] > most) continue;
      is_moved[node] = true;
      cut -= gain;
      move(node);
      moves.push_back(node);
      if (cut < best - 1e-9) {
        best = cut;
        best_count = moves.size();
      }
      for (const int32_t net : hypergraph.nets[node]) {
        // Of crowded nets a move seldom changes gains.
        if (hypergraph.pins[net].size() > 50) continue;
        for (const int32_t other : hypergraph.pins[net]) {
          if (is_moved[other]) continue;
          const double changed = gain_of(other);
          if (changed == gains[other]) continue;
          gains[other] = changed;
          queue.emplace(changed, other);
        }
      }
    }
    while (moves.size() > best_count) {
      move(moves.back());
      moves.pop_back();
    }
    cut = best;
    if (best >= before - 1e-9) break;
  }
  return cut;
}

}  // namespace tensord::core
