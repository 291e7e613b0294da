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

/// The indices of a node, of its partner in a step, and of what they make.
struct Contracted {
  const Indices& node;
  const Indices& partner;  // in its order, where that is known already
  const Indices& result;   // in its order
};

/// The order of the node's modes. `comes_whole` says whether one input of the
/// node has all of a group: the fastest modes had better come from one.
template <typename ComesWhole>
Indices OrderOf(const Contracted& step, ComesWhole comes_whole) {
  const Indices& node = step.node;
  const Indices& partner = step.partner;
  const Indices& result = step.result;
  const Indices kept = Filter(
      result, [&](int32_t i) { return Has(node, i) && !Has(partner, i); });
  const Indices batch = Filter(
      result, [&](int32_t i) { return Has(node, i) && Has(partner, i); });
  const Indices summed = Filter(
      partner, [&](int32_t i) { return Has(node, i) && !Has(result, i); });
  // What is private to the node goes with what is summed.
  const Indices alone = Filter(
      node, [&](int32_t i) { return !Has(partner, i) && !Has(result, i); });
  const bool sums_first =
      kept.empty() ||
      (!summed.empty() && !comes_whole(kept) && comes_whole(summed));
  Indices order;
  const auto append = [&order](const Indices& group) {
    order.insert(order.end(), group.begin(), group.end());
  };
  if (!sums_first) append(kept);
  append(summed);
  append(alone);
  if (sums_first) append(kept);
  append(batch);
  return order;
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
  std::ranges::copy(fixed, orders.begin());
  orders.back() = output;
  for (int32_t s = steps - 1; s >= 0; --s) {
    const std::pair<int32_t, int32_t> pair = tree.steps[s];
    for (const auto& [node, partner] :
         {pair, std::pair(pair.second, pair.first)}) {
      if (node < inputs && !fixed[node].empty()) continue;
      const auto comes_whole = [&, node = node](const Indices& group) {
        if (node < inputs) return true;
        const auto [x, y] = tree.steps[node - inputs];
        return Contains(indices_of(x), group) || Contains(indices_of(y), group);
      };
      orders[node] =
          OrderOf({.node = indices_of(node),
                   .partner = orders[partner].empty() ? indices_of(partner)
                                                      : orders[partner],
                   .result = orders[inputs + s]},
                  comes_whole);
    }
  }
  return orders;
}

}  // namespace tensord::core
