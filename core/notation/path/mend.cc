#include "core/notation/path/mend.h"

#include <algorithm>
#include <cmath>

namespace tensord::core {
namespace {

/// Less than this of the score is not worth a change: it may be rounding.
constexpr double kNoise = 1e-12;
/// Nodes whose part of the score is less are not looked at.
constexpr double kTrifle = 1e-9;

}  // namespace

bool Mender::Sweep(SearchTree& tree, int leaf_limit, Random* random,
                   const Deadline& deadline) {
  std::vector<int32_t> tops = PostorderOf(tree);
  std::ranges::stable_sort(tops, std::ranges::greater(),
                           [&](int32_t at) { return tree.nodes[at].score; });
  const double least = tree.Score() * kTrifle;
  bool has_changed = false;
  for (const int32_t top : tops) {
    if (tree.nodes[top].score < least) continue;
    has_changed |= MendBelow(tree, top, leaf_limit, random);
    if (deadline.IsPast()) break;
  }
  return has_changed;
}

bool Mender::MendBelow(SearchTree& tree, int32_t top, int leaf_limit,
                       Random* random) {
  std::vector<SearchTree::Node>& nodes = tree.nodes;
  frontier_.assign({nodes[top].left, nodes[top].right});
  inner_.assign({top});
  double score = nodes[top].score;
  while (static_cast<int>(frontier_.size()) < leaf_limit) {
    // Open the dearest.
    size_t widest = frontier_.size();
    double most = -1;
    for (size_t i = 0; i < frontier_.size(); ++i) {
      const SearchTree::Node& node = nodes[frontier_[i]];
      if (node.is_input()) continue;
      const double key = random == nullptr ? node.score : random->Unit();
      if (key > most) {
        most = key;
        widest = i;
      }
    }
    if (widest == frontier_.size()) break;
    const int32_t opened = frontier_[widest];
    frontier_[widest] = nodes[opened].left;
    frontier_.push_back(nodes[opened].right);
    inner_.push_back(opened);
    score += nodes[opened].score;
  }
  if (inner_.size() < 2) return false;
  leaves_.clear();
  for (const int32_t leaf : frontier_) leaves_.push_back(&nodes[leaf].legs);
  const Steps steps = optimal_.Find(graph_, leaves_, score * (1 - kNoise));
  if (steps.empty()) return false;
  // The nodes inside take new places; the top one is made last.
  const int32_t parent = nodes[top].parent;
  numbers_ = frontier_;
  for (size_t i = 0; i < steps.size(); ++i) {
    const int32_t made = inner_[inner_.size() - 1 - i];
    SetChildren(graph_, tree, made, numbers_[steps[i].first],
                numbers_[steps[i].second]);
    numbers_.push_back(made);
  }
  nodes[top].parent = parent;
  return true;
}

void Mender::Mend(SearchTree& tree, int leaf_limit, int patience,
                  Random& random, const Deadline& deadline) {
  while (!deadline.IsPast() && Sweep(tree, leaf_limit, nullptr, deadline)) {
  }
  for (int idle = 0; idle < patience && !deadline.IsPast();) {
    idle = Sweep(tree, leaf_limit, &random, deadline) ? 0 : idle + 1;
  }
}

void Mender::TurnAt(SearchTree& tree, int32_t top, double temperature,
                    Random& random) {
  std::vector<SearchTree::Node>& nodes = tree.nodes;
  const uint64_t bits = random.Next();
  // ((moved, stays), other) becomes ((other, stays), moved).
  int32_t turned = nodes[top].left, other = nodes[top].right;
  if (nodes[turned].is_input() || (!nodes[other].is_input() && (bits & 1))) {
    std::swap(turned, other);
  }
  if (nodes[turned].is_input()) return;
  int32_t moved = nodes[turned].left, stays = nodes[turned].right;
  if (bits & 2) std::swap(moved, stays);
  const Join inner =
      JoinLegs(graph_, nodes[other].legs, nodes[stays].legs, scratch_);
  const double inner_score = ScoreOf(inner);
  const double before = nodes[top].score + nodes[turned].score;
  if (inner_score >= before * 1e6) return;
  const double outer_score =
      ScoreOf(JoinLegs(graph_, scratch_, nodes[moved].legs));
  const double after = inner_score + outer_score;
  if (after > before &&
      (temperature <= 0 ||
       std::log2(after / before) > -temperature * std::log(random.Unit()))) {
    return;
  }
  std::swap(nodes[turned].legs, scratch_);
  nodes[turned].left = other;
  nodes[turned].right = stays;
  nodes[turned].bits = inner.result_bits;
  nodes[turned].score = inner_score;
  nodes[other].parent = turned;
  nodes[top].left = turned;
  nodes[top].right = moved;
  nodes[moved].parent = top;
  nodes[top].score = outer_score;
}

void Mender::Anneal(SearchTree& tree, int sweep_count, double hottest,
                    double coldest, Random& random, const Deadline& deadline) {
  SearchTree best = tree;
  double best_score = tree.Score();
  const int node_count = static_cast<int>(tree.nodes.size());
  const int input_count = tree.input_count();
  for (int sweep = 0; sweep < sweep_count && !deadline.IsPast(); ++sweep) {
    const double temperature =
        hottest *
        std::pow(coldest / hottest, static_cast<double>(sweep) / sweep_count);
    for (int at = input_count; at < node_count; ++at) {
      TurnAt(tree, at, temperature, random);
    }
    const double score = tree.Score();
    if (score < best_score * (1 - kNoise)) {
      best_score = score;
      best = tree;
    }
  }
  tree = std::move(best);
}

}  // namespace tensord::core
