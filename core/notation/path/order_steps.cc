#include "core/notation/path/order_steps.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tensord::core {

ContractionTree OrderForPeak(const Network& network,
                             const ContractionTree& tree,
                             absl::Span<const int32_t> sliced) {
  const size_t input_count = network.inputs.size();
  const size_t node_count = input_count + tree.steps.size();
  std::vector<double> extents(network.extents.begin(), network.extents.end());
  for (const int32_t index : sliced) extents[index] = 1;
  std::vector<double> sizes(node_count), peaks(node_count);  // inputs: 0
  std::vector<Network::Indices> results = ResultsOf(network, tree);
  std::vector<std::pair<int32_t, int32_t>> children = tree.steps;
  for (size_t i = 0; i < children.size(); ++i) {
    auto& [a, b] = children[i];
    double& size = sizes[input_count + i] = 1;
    for (const int32_t index : results[i]) size *= extents[index];
    const double a_first = std::max(peaks[a], sizes[a] + peaks[b]);
    const double b_first = std::max(peaks[b], sizes[b] + peaks[a]);
    // Among equals inputs last: they are there anyway.
    if (b_first < a_first || (b_first == a_first && peaks[a] < peaks[b])) {
      std::swap(a, b);
    }
    peaks[input_count + i] =
        std::max(std::min(a_first, b_first), sizes[a] + sizes[b] + size);
  }

  // Backwards from the root: the child that comes last first.
  ContractionTree ordered;
  std::vector<int32_t> made, open;  // nodes
  if (!children.empty()) open.push_back(static_cast<int32_t>(node_count) - 1);
  while (!open.empty()) {
    const int32_t node = open.back();
    open.pop_back();
    made.push_back(node);
    for (const int32_t child : {children[node - input_count].first,
                                children[node - input_count].second}) {
      if (child >= static_cast<int32_t>(input_count)) open.push_back(child);
    }
  }
  std::ranges::reverse(made);
  std::vector<int32_t> numbers(node_count);
  for (size_t i = 0; i < input_count; ++i) numbers[i] = static_cast<int32_t>(i);
  for (size_t i = 0; i < made.size(); ++i) {
    const auto [a, b] = children[made[i] - input_count];
    ordered.steps.emplace_back(std::minmax(numbers[a], numbers[b]));
    numbers[made[i]] = static_cast<int32_t>(input_count + i);
  }
  return ordered;
}

}  // namespace tensord::core
