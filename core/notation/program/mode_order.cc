#include "core/notation/program/mode_order.h"

#include <algorithm>
#include <utility>

namespace tensord::core {
namespace {

using Indices = Network::Indices;

bool Has(const Indices& indices, int32_t index) {
  return std::ranges::find(indices, index) != indices.end();
}

/// Those of `order` for which `keep` holds.
template <typename Keep>
Indices Filter(const Indices& order, Keep keep) {
  Indices kept;
  std::ranges::copy_if(order, std::back_inserter(kept), keep);
  return kept;
}

/// True when all of `part` are in `indices`.
bool Contains(const Indices& indices, const Indices& part) {
  return std::ranges::all_of(
      part, [&](int32_t index) { return Has(indices, index); });
}

}  // namespace

std::vector<Indices> ModeOrders(const Network& network,
                                const ContractionTree& tree,
                                absl::Span<const Indices> fixed,
                                const Indices& output) {
  const auto inputs = static_cast<int32_t>(network.inputs.size());
  const auto steps = static_cast<int32_t>(tree.steps.size());
  const std::vector<Indices> results = ResultsOf(network, tree);
  const auto indices_of = [&](int32_t node) -> const Indices& {
    return node < inputs ? network.inputs[node] : results[node - inputs];
  };
  std::vector<Indices> orders(inputs + steps);
  const auto is_fixed = [&](int32_t node) {
    return node < inputs && !fixed[node].empty();
  };
  for (int32_t node = 0; node < inputs; ++node) {
    if (is_fixed(node)) orders[node] = fixed[node];
  }
  orders.back() = output;
  for (int32_t s = steps - 1; s >= 0; --s) {
    const Indices& result = orders[inputs + s];
    const std::pair<int32_t, int32_t> pair = tree.steps[s];
    for (const auto& [node, partner] :
         {pair, std::pair(pair.second, pair.first)}) {
      if (is_fixed(node)) continue;
      const Indices& mine = indices_of(node);
      const Indices& others = indices_of(partner);
      const Indices kept = Filter(
          result, [&](int32_t i) { return Has(mine, i) && !Has(others, i); });
      const Indices batch = Filter(
          result, [&](int32_t i) { return Has(mine, i) && Has(others, i); });
      // In the partner's order, where that is known already.
      const Indices& common =
          orders[partner].empty() ? others : orders[partner];
      const Indices summed = Filter(
          common, [&](int32_t i) { return Has(mine, i) && !Has(result, i); });
      // What is private to the node goes with what is summed.
      const Indices alone = Filter(
          mine, [&](int32_t i) { return !Has(others, i) && !Has(result, i); });
      // The fastest modes had better come from one input of the node.
      bool sums_first = kept.empty();
      if (node >= inputs && !kept.empty() && !summed.empty()) {
        const auto [x, y] = tree.steps[node - inputs];
        const auto is_whole = [&, x = x, y = y](const Indices& group) {
          return Contains(indices_of(x), group) ||
                 Contains(indices_of(y), group);
        };
        sums_first = !is_whole(kept) && is_whole(summed);
      }
      Indices& order = orders[node];
      const auto append = [&order](const Indices& group) {
        order.insert(order.end(), group.begin(), group.end());
      };
      if (!sums_first) append(kept);
      append(summed);
      append(alone);
      if (sums_first) append(kept);
      append(batch);
    }
  }
  return orders;
}

}  // namespace tensord::core
