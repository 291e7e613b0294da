#include "core/notation/path/search_graph.h"

#include <map>
#include <utility>

namespace tensord::core {

SearchGraph GraphOf(const Network& network, absl::Span<const int32_t> sliced) {
  const size_t index_count = network.extents.size();
  // Where each index occurs; the output counts as one more input.
  std::vector<std::vector<int32_t>> holders(index_count);
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    for (const int32_t index : network.inputs[i]) {
      holders[index].push_back(static_cast<int32_t>(i));
    }
  }
  for (const int32_t index : network.output) {
    holders[index].push_back(static_cast<int32_t>(network.inputs.size()));
  }
  for (const int32_t index : sliced) holders[index].clear();

  SearchGraph graph;
  graph.inputs.resize(network.inputs.size());
  std::map<absl::Span<const int32_t>, int32_t> known;
  for (size_t index = 0; index < index_count; ++index) {
    const std::vector<int32_t>& at = holders[index];
    if (at.size() < 2) continue;
    const auto [place, is_new] =
        known.try_emplace(at, static_cast<int32_t>(graph.bits.size()));
    const double bits = std::log2(static_cast<double>(network.extents[index]));
    if (!is_new) {
      graph.bits[place->second] += bits;
      continue;
    }
    graph.bits.push_back(bits);
    graph.totals.push_back(static_cast<int32_t>(at.size()));
    for (const int32_t input : at) {
      if (input < static_cast<int32_t>(network.inputs.size())) {
        graph.inputs[input].push_back({place->second, 1});
      }
    }
  }
  return graph;
}

}  // namespace tensord::core
