#include "core/notation/path/network.h"

#include <algorithm>

#include "core/notation/path/search_graph.h"

namespace tensord::core {
namespace {

/// How often each index occurs, in inputs and output; 0 for the fixed ones.
std::vector<int32_t> OccurrencesOf(const Network& network,
                                   absl::Span<const int32_t> sliced) {
  std::vector<int32_t> counts(network.extents.size());
  for (const Network::Indices& input : network.inputs) {
    for (const int32_t index : input) ++counts[index];
  }
  for (const int32_t index : network.output) ++counts[index];
  for (const int32_t index : sliced) counts[index] = 0;
  return counts;
}

/// The legs of the inputs when what a single one has is summed.
std::vector<Legs> InputLegs(const Network& network,
                            absl::Span<const int32_t> occurrences) {
  std::vector<Legs> nodes;
  nodes.reserve(2 * network.inputs.size());
  for (const Network::Indices& input : network.inputs) {
    Legs& legs = nodes.emplace_back();
    for (const int32_t index : input) {
      if (occurrences[index] > 1) legs.push_back({index, 1});
    }
    std::ranges::sort(legs, {}, &Leg::index);
  }
  return nodes;
}

/// The legs of the result of two nodes; `take` is told of every index of
/// theirs, and whether the result has it.
template <typename Take>
Legs Contract(const Legs& a, const Legs& b,
              absl::Span<const int32_t> occurrences, Take take) {
  Legs result;
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() || y != b.end()) {
    Leg leg;
    if (y == b.end() || (x != a.end() && x->index < y->index)) {
      leg = *x++;
    } else if (x == a.end() || y->index < x->index) {
      leg = *y++;
    } else {
      leg = {x->index, x->count + y->count};
      ++x;
      ++y;
    }
    const bool is_kept = leg.count < occurrences[leg.index];
    take(leg.index, is_kept);
    if (is_kept) result.push_back(leg);
  }
  return result;
}

}  // namespace

TreeCost CostOf(const Network& network, const ContractionTree& tree,
                absl::Span<const int32_t> sliced) {
  const std::vector<int32_t> occurrences = OccurrencesOf(network, sliced);
  const auto extent = [&](int32_t index) {
    return static_cast<double>(network.extents[index]);
  };
  double slice_count = 1;
  for (const int32_t index : sliced) slice_count *= extent(index);
  double whole = 1, part = 1;  // of the result
  for (const int32_t index : network.output) {
    whole *= extent(index);
    if (occurrences[index] > 0) part *= extent(index);
  }

  TreeCost cost;
  for (const Network::Indices& input : network.inputs) {
    bool sums = false;
    double size = 1;
    for (const int32_t index : input) {
      sums |= occurrences[index] == 1 && network.extents[index] > 1;
      if (occurrences[index] > 0) size *= extent(index);
    }
    if (sums) cost.flops += size;
  }

  std::vector<Legs> nodes = InputLegs(network, occurrences);
  std::vector<double> sizes(nodes.size());  // of results; of inputs 0
  double alive = sliced.empty() ? 0 : whole;
  for (const auto& [a, b] : tree.steps) {
    double all = 1, kept = 1;
    bool sums = false;
    nodes.push_back(Contract(nodes[a], nodes[b], occurrences,
                             [&](int32_t index, bool is_kept) {
                               all *= extent(index);
                               if (is_kept) kept *= extent(index);
                               sums |= !is_kept;
                             }));
    const bool is_last = &tree.steps.back() ==
                         &tree.steps[nodes.size() - 1 - network.inputs.size()];
    cost.flops += sums ? 2 * all : all;
    cost.written += kept;
    cost.largest = std::max(cost.largest, is_last ? whole : kept);
    if (!is_last || sliced.empty()) alive += kept;
    cost.peak = std::max(cost.peak, alive);
    alive -= sizes[a] + sizes[b];
    sizes.push_back(kept);
    nodes[a].clear();
    nodes[b].clear();
  }
  // The slices' results are added up.
  const bool adds = std::ranges::any_of(sliced, [&](int32_t index) {
    return std::ranges::find(network.output, index) == network.output.end();
  });
  if (adds) cost.flops += part;
  cost.flops *= slice_count;
  cost.written *= slice_count;
  return cost;
}

std::vector<Network::Indices> ResultsOf(const Network& network,
                                        const ContractionTree& tree) {
  const std::vector<int32_t> occurrences = OccurrencesOf(network, {});
  std::vector<Legs> nodes = InputLegs(network, occurrences);
  std::vector<Network::Indices> results;
  results.reserve(tree.steps.size());
  for (const auto& [a, b] : tree.steps) {
    nodes.push_back(
        Contract(nodes[a], nodes[b], occurrences, [](int32_t, bool) {}));
    Network::Indices& result = results.emplace_back();
    for (const Leg& leg : nodes.back()) result.push_back(leg.index);
  }
  return results;
}

}  // namespace tensord::core
