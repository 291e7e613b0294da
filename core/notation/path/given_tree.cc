// Trees that clients give: by the order of indices and by positions.
#include <algorithm>
#include <numeric>
#include <set>

#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/notation/path/find_path.h"

namespace tensord::core {
namespace {

constexpr absl::string_view kPathMalformed = "PATH_MALFORMED";

/// Contracts `nodes` from the first to the last; returns the result.
int32_t Fold(int input_count, absl::Span<const int32_t> nodes,
             ContractionTree& tree) {
  int32_t product = nodes[0];
  for (const int32_t node : nodes.subspan(1)) {
    tree.steps.emplace_back(std::minmax(product, node));
    product = static_cast<int32_t>(input_count + tree.steps.size() - 1);
  }
  return product;
}

}  // namespace

ContractionTree TreeFromIndexOrder(const Network& network,
                                   absl::Span<const int32_t> order) {
  const int input_count = static_cast<int>(network.inputs.size());
  std::vector<std::vector<int32_t>> holders(network.extents.size());
  for (int i = 0; i < input_count; ++i) {
    for (const int32_t index : network.inputs[i]) holders[index].push_back(i);
  }
  // Which result an input has become part of, through those in between.
  std::vector<int32_t> owners(2 * input_count);
  std::iota(owners.begin(), owners.end(), 0);
  const auto owner_of = [&](int32_t node) {
    while (owners[node] != node) {
      owners[node] = owners[owners[node]];
      node = owners[node];
    }
    return node;
  };
  ContractionTree tree;
  const auto contract = [&](absl::Span<const int32_t> inputs) {
    std::set<int32_t> nodes;
    for (const int32_t input : inputs) nodes.insert(owner_of(input));
    if (nodes.size() < 2) return;
    const std::vector<int32_t> sorted(nodes.begin(), nodes.end());
    const size_t begin = tree.steps.size();
    Fold(input_count, sorted, tree);
    for (size_t i = begin; i < tree.steps.size(); ++i) {
      const auto result = static_cast<int32_t>(input_count + i);
      owners[tree.steps[i].first] = result;
      owners[tree.steps[i].second] = result;
    }
  };
  for (const int32_t index : order) contract(holders[index]);
  std::vector<int32_t> all(input_count);
  std::iota(all.begin(), all.end(), 0);
  contract(all);
  return tree;
}

absl::StatusOr<ContractionTree> TreeFromPositions(
    int input_count, absl::Span<const std::vector<int64_t>> path) {
  std::vector<int32_t> nodes(input_count);
  std::iota(nodes.begin(), nodes.end(), 0);
  ContractionTree tree;
  for (size_t step = 0; step < path.size(); ++step) {
    std::vector<int64_t> positions = path[step];
    std::ranges::sort(positions);
    const auto malformed = [&](absl::string_view what) {
      return InvalidArgument(kPathMalformed, "step ", step, " of the path, (",
                             absl::StrJoin(path[step], ", "), "), ", what);
    };
    if (positions.empty()) return malformed("names no operand");
    if (positions.front() < 0 ||
        positions.back() >= static_cast<int64_t>(nodes.size())) {
      return malformed(absl::StrCat("names a position outside the ",
                                    nodes.size(), " operands that are left"));
    }
    if (std::ranges::adjacent_find(positions) != positions.end()) {
      return malformed("names a position twice");
    }
    std::vector<int32_t> taken;
    for (const int64_t position : positions) taken.push_back(nodes[position]);
    for (auto at = positions.rbegin(); at != positions.rend(); ++at) {
      nodes.erase(nodes.begin() + *at);
    }
    nodes.push_back(Fold(input_count, taken, tree));
  }
  if (nodes.size() > 1) {
    return InvalidArgument(kPathMalformed, "the path leaves ", nodes.size(),
                           " operands, wanted one");
  }
  return tree;
}

}  // namespace tensord::core
