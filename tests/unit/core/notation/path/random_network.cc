#include "tests/unit/core/notation/path/random_network.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <utility>

namespace tensord::test {
namespace {

using core::ContractionTree;
using core::Network;
using core::TreeCost;

using InputSet = std::set<int>;
using IndexSet = std::set<int32_t>;

bool Has(const Network::Indices& indices, int32_t index) {
  return std::find(indices.begin(), indices.end(), index) != indices.end();
}

InputSet Together(const InputSet& a, const InputSet& b) {
  InputSet both = a;
  both.insert(b.begin(), b.end());
  return both;
}

/// The indices of the product of `inputs`: those that output or others have.
IndexSet KeptBy(const Network& network, const InputSet& inputs,
                const IndexSet& sliced) {
  IndexSet kept;
  for (const int input : inputs) {
    for (const int32_t index : network.inputs[input]) {
      bool is_kept = Has(network.output, index);
      for (size_t other = 0; other < network.inputs.size(); ++other) {
        is_kept |= !inputs.contains(static_cast<int>(other)) &&
                   Has(network.inputs[other], index);
      }
      if (is_kept && !sliced.contains(index)) kept.insert(index);
    }
  }
  return kept;
}

double Elements(const Network& network, const IndexSet& indices) {
  double count = 1;
  for (const int32_t index : indices) {
    count *= static_cast<double>(network.extents[index]);
  }
  return count;
}

/// Operations of the step that contracts the two.
double StepFlops(const Network& network, const InputSet& a, const InputSet& b,
                 const IndexSet& sliced) {
  IndexSet all = KeptBy(network, a, sliced);
  all.merge(KeptBy(network, b, sliced));
  const IndexSet kept = KeptBy(network, Together(a, b), sliced);
  return Elements(network, all) * (kept.size() < all.size() ? 2 : 1);
}

/// Operations of the sums over what a single input has.
double FirstFlops(const Network& network, const IndexSet& sliced) {
  double flops = 0;
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    IndexSet all;
    for (const int32_t index : network.inputs[i]) {
      if (!sliced.contains(index)) all.insert(index);
    }
    const IndexSet kept = KeptBy(network, {static_cast<int>(i)}, sliced);
    // Of indices of one element there is nothing to sum.
    if (Elements(network, kept) < Elements(network, all)) {
      flops += Elements(network, all);
    }
  }
  return flops;
}

}  // namespace

Network RandomNetwork(std::mt19937& rng, const NetworkShape& shape) {
  const auto between = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(rng);
  };
  Network network;
  const int input_count = between(shape.min_inputs, shape.max_inputs);
  const int index_count = between(0, shape.max_indices);
  network.inputs.resize(input_count);
  for (int32_t index = 0; index < index_count; ++index) {
    network.extents.push_back(between(1, shape.max_extent));
    const int occurrences =
        between(1, std::min(shape.max_occurrences, input_count));
    for (int i = 0; i < occurrences; ++i) {
      Network::Indices& input = network.inputs[between(0, input_count - 1)];
      if (!Has(input, index)) {
        input.insert(input.begin() + between(0, static_cast<int>(input.size())),
                     index);
      }
    }
    if (between(0, 3) == 0) network.output.push_back(index);
  }
  std::shuffle(network.output.begin(), network.output.end(), rng);
  return network;
}

Network RegularNetwork(std::mt19937& rng, int input_count, int degree,
                       int64_t extent) {
  Network network;
  network.inputs.resize(input_count);
  const auto connect = [&](int a, int b) {
    const auto index = static_cast<int32_t>(network.extents.size());
    network.extents.push_back(extent);
    network.inputs[a].push_back(index);
    network.inputs[b].push_back(index);
  };
  for (int i = 1; i < input_count; ++i) {
    connect(i, std::uniform_int_distribution<int>(0, i - 1)(rng));
  }
  for (int i = input_count - 1; i < input_count * degree / 2; ++i) {
    std::uniform_int_distribution<int> any(0, input_count - 1);
    const int a = any(rng), b = any(rng);
    if (a != b) connect(a, b);
  }
  return network;
}

bool IsTree(int input_count, const ContractionTree& tree) {
  if (static_cast<int>(tree.steps.size()) != input_count - 1) return false;
  std::set<int32_t> used;
  for (size_t i = 0; i < tree.steps.size(); ++i) {
    for (const int32_t node : {tree.steps[i].first, tree.steps[i].second}) {
      if (node < 0 || node >= input_count + static_cast<int32_t>(i) ||
          !used.insert(node).second) {
        return false;
      }
    }
  }
  return true;
}

TreeCost CostByDefinition(const Network& network, const ContractionTree& tree,
                          const std::vector<int32_t>& sliced) {
  const IndexSet fixed(sliced.begin(), sliced.end());
  const double slices = Elements(network, fixed);
  const IndexSet output(network.output.begin(), network.output.end());
  const double whole = Elements(network, output);
  TreeCost cost;
  cost.flops = FirstFlops(network, fixed);
  std::vector<InputSet> nodes;
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    nodes.push_back({static_cast<int>(i)});
  }
  std::map<int32_t, double> alive;  // elements of the results that are kept
  constexpr int32_t kWhole = -1;
  if (!sliced.empty()) alive[kWhole] = whole;
  for (size_t i = 0; i < tree.steps.size(); ++i) {
    const auto [a, b] = tree.steps[i];
    const auto node = static_cast<int32_t>(nodes.size());
    nodes.push_back(Together(nodes[a], nodes[b]));
    cost.flops += StepFlops(network, nodes[a], nodes[b], fixed);
    const double size = Elements(network, KeptBy(network, nodes[node], fixed));
    cost.written += size;
    const bool is_last = i + 1 == tree.steps.size();
    cost.largest = std::max(cost.largest, is_last ? whole : size);
    // The last step of a slice writes into the whole result.
    if (!is_last || sliced.empty()) alive[node] = size;
    double sum = 0;
    for (const auto& [_, elements] : alive) sum += elements;
    cost.peak = std::max(cost.peak, sum);
    alive.erase(a);
    alive.erase(b);
  }
  IndexSet summed = fixed;
  for (const int32_t index : network.output) summed.erase(index);
  if (!summed.empty()) {
    IndexSet kept = output;
    for (const int32_t index : fixed) kept.erase(index);
    cost.flops += Elements(network, kept);
  }
  cost.flops *= slices;
  cost.written *= slices;
  return cost;
}

double MultiplicationsByDefinition(const Network& network,
                                   const ContractionTree& tree) {
  double sum = 0;
  std::vector<InputSet> nodes;
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    nodes.push_back({static_cast<int>(i)});
  }
  for (const auto& [a, b] : tree.steps) {
    IndexSet all = KeptBy(network, nodes[a], {});
    all.merge(KeptBy(network, nodes[b], {}));
    sum += Elements(network, all);
    nodes.push_back(Together(nodes[a], nodes[b]));
  }
  return sum;
}

double LeastFlops(const Network& network) {
  double least = std::numeric_limits<double>::infinity();
  std::function<void(const std::vector<InputSet>&, double)> contract =
      [&](const std::vector<InputSet>& nodes, double flops) {
        if (nodes.size() == 1) least = std::min(least, flops);
        for (size_t i = 0; i < nodes.size(); ++i) {
          for (size_t j = i + 1; j < nodes.size(); ++j) {
            const double with =
                flops + StepFlops(network, nodes[i], nodes[j], {});
            if (with > least) continue;
            std::vector<InputSet> next = nodes;
            next[i] = Together(nodes[i], nodes[j]);
            next.erase(next.begin() + static_cast<ptrdiff_t>(j));
            contract(next, with);
          }
        }
      };
  std::vector<InputSet> inputs;
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    inputs.push_back({static_cast<int>(i)});
  }
  contract(inputs, FirstFlops(network, {}));
  return least;
}

ContractionTree RandomTree(std::mt19937& rng, int input_count) {
  ContractionTree tree;
  std::vector<int32_t> nodes;
  for (int i = 0; i < input_count; ++i) nodes.push_back(i);
  while (nodes.size() > 1) {
    std::shuffle(nodes.begin(), nodes.end(), rng);
    const int32_t a = nodes.back();
    nodes.pop_back();
    tree.steps.emplace_back(a, nodes.back());
    nodes.back() = input_count + static_cast<int32_t>(tree.steps.size()) - 1;
  }
  return tree;
}

}  // namespace tensord::test
