#include "core/notation/path/greedy.h"

#include <algorithm>
#include <cmath>

namespace tensord::core {
namespace {

/// Of an index in more nodes than this only some pairs are looked at.
constexpr int kCrowd = 24;

}  // namespace

Steps GreedySearch::Find(const GreedyWeights& weights, Random& random,
                         double bound) {
  std::vector<const Legs*> inputs;
  for (const Legs& legs : graph_.inputs) inputs.push_back(&legs);
  return Find(inputs, weights, random, bound);
}

Steps GreedySearch::Find(absl::Span<const Legs* const> inputs,
                         const GreedyWeights& weights, Random& random,
                         double bound) {
  const size_t node_count = 2 * inputs.size() - 1;
  legs_.resize(node_count);
  bits_.resize(node_count);
  sizes_.resize(node_count);
  is_alive_.assign(node_count, false);
  seen_from_.assign(node_count, -1);
  holders_.resize(graph_.index_count());
  for (std::vector<int32_t>& holders : holders_) holders.clear();
  heap_.clear();
  steps_.clear();
  score_ = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    legs_[i] = *inputs[i];
    bits_[i] = BitsOf(graph_, legs_[i]);
    sizes_[i] = SizeOf(bits_[i]);
    is_alive_[i] = true;
    for (const Leg& leg : legs_[i]) {
      holders_[leg.index].push_back(static_cast<int32_t>(i));
    }
  }
  AddPairs(weights, random);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate next = heap_.back();
    heap_.pop_back();
    if (!is_alive_[next.a] || !is_alive_[next.b]) continue;
    Contract(next.a, next.b);
    if (score_ >= bound) return {};
    AddPairsOf(weights, random,
               static_cast<int32_t>(inputs.size() + steps_.size() - 1));
  }
  ContractRest();
  if (score_ >= bound) return {};
  return steps_;
}

void GreedySearch::Add(const GreedyWeights& weights, Random& random, int32_t a,
                       int32_t b) {
  const Join join = JoinLegs(graph_, legs_[a], legs_[b]);
  const double delta =
      SizeOf(join.result_bits) - weights.alpha * (sizes_[a] + sizes_[b]);
  double key = delta;
  if (weights.temperature > 0) {
    key = std::copysign(std::log1p(std::abs(delta)), delta) -
          weights.temperature * random.Gumbel();
  }
  heap_.push_back({key, std::min(a, b), std::max(a, b)});
  std::push_heap(heap_.begin(), heap_.end());
}

void GreedySearch::AddPairs(const GreedyWeights& weights, Random& random) {
  for (std::vector<int32_t>& holders : holders_) {
    const int count = static_cast<int>(holders.size());
    if (count <= kCrowd) {
      for (int i = 0; i < count; ++i) {
        for (int j = i + 1; j < count; ++j) {
          Add(weights, random, holders[i], holders[j]);
        }
      }
      continue;
    }
    // Nodes of like size are the likely pairs.
    std::vector<int32_t> sorted = holders;
    std::ranges::stable_sort(sorted, {}, [&](int32_t at) { return bits_[at]; });
    for (int i = 0; i < count; ++i) {
      for (int j = i + 1; j < std::min(count, i + 4); ++j) {
        Add(weights, random, sorted[i], sorted[j]);
      }
    }
  }
}

void GreedySearch::AddPairsOf(const GreedyWeights& weights, Random& random,
                              int32_t node) {
  seen_from_[node] = node;
  for (const Leg& leg : legs_[node]) {
    const std::vector<int32_t>& holders = holders_[leg.index];
    const int count = static_cast<int>(holders.size());
    // The latest: they are the last to have changed.
    for (int i = std::max(0, count - kCrowd); i < count; ++i) {
      if (seen_from_[holders[i]] == node) continue;
      seen_from_[holders[i]] = node;
      Add(weights, random, holders[i], node);
    }
  }
}

void GreedySearch::Contract(int32_t a, int32_t b) {
  const int32_t node =
      static_cast<int32_t>((legs_.size() + 1) / 2 + steps_.size());
  steps_.emplace_back(a, b);
  const Join join = JoinLegs(graph_, legs_[a], legs_[b], legs_[node]);
  bits_[node] = join.result_bits;
  sizes_[node] = SizeOf(join.result_bits);
  score_ += ScoreOf(join);
  for (const int32_t gone : {a, b}) {
    is_alive_[gone] = false;
    for (const Leg& leg : legs_[gone]) {
      std::vector<int32_t>& holders = holders_[leg.index];
      holders.erase(std::ranges::find(holders, gone));
    }
  }
  is_alive_[node] = true;
  for (const Leg& leg : legs_[node]) holders_[leg.index].push_back(node);
}

void GreedySearch::ContractRest() {
  const auto put = [&](int32_t node) {
    heap_.push_back({bits_[node], node, node});
    std::push_heap(heap_.begin(), heap_.end());
  };
  const auto take = [&] {
    std::pop_heap(heap_.begin(), heap_.end());
    const int32_t node = heap_.back().a;
    heap_.pop_back();
    return node;
  };
  const int32_t input_count = static_cast<int32_t>((legs_.size() + 1) / 2);
  for (size_t i = 0; i < legs_.size(); ++i) {
    if (is_alive_[i]) put(static_cast<int32_t>(i));
  }
  while (heap_.size() > 1) {
    const int32_t a = take();
    const int32_t b = take();
    Contract(a, b);
    put(static_cast<int32_t>(input_count + steps_.size() - 1));
  }
  heap_.clear();
}

}  // namespace tensord::core
