#include "core/notation/path/search_tree.h"

#include <algorithm>

namespace tensord::core {

double SearchTree::Score() const {
  double score = 0;
  for (const Node& node : nodes) score += node.score;
  return score;
}

SearchTree TreeOf(const SearchGraph& graph,
                  absl::Span<const Steps::value_type> steps) {
  SearchTree tree;
  const int input_count = graph.input_count();
  tree.nodes.resize(input_count + steps.size());
  for (int i = 0; i < input_count; ++i) {
    tree.nodes[i].legs = graph.inputs[i];
    tree.nodes[i].bits = BitsOf(graph, graph.inputs[i]);
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    SetChildren(graph, tree, static_cast<int32_t>(input_count + i),
                steps[i].first, steps[i].second);
  }
  return tree;
}

void SetChildren(const SearchGraph& graph, SearchTree& tree, int32_t parent,
                 int32_t left, int32_t right) {
  SearchTree::Node& node = tree.nodes[parent];
  node.left = left;
  node.right = right;
  tree.nodes[left].parent = parent;
  tree.nodes[right].parent = parent;
  const Join join =
      JoinLegs(graph, tree.nodes[left].legs, tree.nodes[right].legs, node.legs);
  node.bits = join.result_bits;
  node.score = ScoreOf(join);
}

std::vector<int32_t> PostorderOf(const SearchTree& tree) {
  std::vector<int32_t> order, open = {tree.root()};
  while (!open.empty()) {
    const int32_t at = open.back();
    open.pop_back();
    const SearchTree::Node& node = tree.nodes[at];
    if (node.is_input()) continue;
    order.push_back(at);
    open.push_back(node.left);
    open.push_back(node.right);
  }
  std::ranges::reverse(order);
  return order;
}

ContractionTree ContractionTreeOf(const SearchTree& tree) {
  ContractionTree result;
  std::vector<int32_t> numbers(tree.nodes.size());
  const int input_count = tree.input_count();
  for (int i = 0; i < input_count; ++i) numbers[i] = i;
  for (const int32_t at : PostorderOf(tree)) {
    const SearchTree::Node& node = tree.nodes[at];
    result.steps.push_back(
        std::minmax({numbers[node.left], numbers[node.right]}));
    numbers[at] = static_cast<int32_t>(input_count + result.steps.size() - 1);
  }
  return result;
}

}  // namespace tensord::core
