#include "core/notation/path/sliced/anneal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/notation/path/search_graph.h"

namespace tensord::core {
namespace {

/// Rounding of sums of logarithms.
constexpr double kEpsilon = 1e-9;

/// Of indices that make results fit, how much the cheapest is preferred; and
/// what slicing costs at least, so that those that help more count.
constexpr double kSliceNoise = 1;
constexpr double kLeastAdded = 0.02;

}  // namespace

SliceAnnealer::SliceAnnealer(const Network& network, double max_bits)
    : network_(network), max_bits_(max_bits + kEpsilon) {
  NumberIndices();
}

void SliceAnnealer::NumberIndices() {
  const size_t input_count = network_.inputs.size();
  std::vector<int32_t> counts(network_.extents.size());
  for (const Network::Indices& input : network_.inputs) {
    for (const int32_t index : input) ++counts[index];
  }
  for (const int32_t index : network_.output) ++counts[index];
  // Words hold indices of one extent each.
  std::map<int64_t, std::vector<int32_t>> by_extent;
  for (size_t i = 0; i < counts.size(); ++i) {
    // What one input has alone is summed before.
    if (counts[i] < 2) continue;
    by_extent[network_.extents[i]].push_back(static_cast<int32_t>(i));
  }
  std::vector<int32_t> bits(counts.size(), -1);
  for (const auto& [extent, indices] : by_extent) {
    for (size_t i = 0; i < indices.size(); ++i) {
      if (i % 64 == 0) {
        weights_.push_back(std::log2(static_cast<double>(extent)));
        indices_.resize(64 * weights_.size(), -1);
      }
      const size_t bit = 64 * (weights_.size() - 1) + i % 64;
      bits[indices[i]] = static_cast<int32_t>(bit);
      indices_[bit] = indices[i];
    }
  }
  word_count_ = static_cast<int>(weights_.size());
  input_legs_.assign(input_count * word_count_, 0);
  for (size_t i = 0; i < input_count; ++i) {
    for (const int32_t index : network_.inputs[i]) {
      const int32_t bit = bits[index];
      if (bit < 0) continue;
      input_legs_[i * word_count_ + bit / 64] |= Word{1} << (bit % 64);
    }
  }
  shares_.resize(indices_.size());
  covers_.resize(indices_.size());
}

void SliceAnnealer::Toggle(int32_t bit) {
  const double weight = WeightOf(bit);
  state_.slice_bits += IsActive(bit) ? weight : -weight;
  state_.active[bit / 64] ^= Word{1} << (bit % 64);
}

void SliceAnnealer::Load(const ContractionTree& tree,
                         absl::Span<const int32_t> sliced, Random& random) {
  const size_t input_count = network_.inputs.size();
  const size_t node_count = input_count + tree.steps.size();
  state_.nodes.assign(node_count, {});
  state_.legs = input_legs_;
  state_.legs.resize(node_count * word_count_);
  const std::vector<Network::Indices> results = ResultsOf(network_, tree);
  std::vector<int32_t> bits(network_.extents.size(), -1);
  for (size_t bit = 0; bit < indices_.size(); ++bit) {
    if (indices_[bit] >= 0) bits[indices_[bit]] = static_cast<int32_t>(bit);
  }
  for (size_t i = 0; i < tree.steps.size(); ++i) {
    Node& node = state_.nodes[input_count + i];
    node.left = tree.steps[i].first;
    node.right = tree.steps[i].second;
    for (const int32_t index : results[i]) {
      if (const int32_t bit = bits[index]; bit >= 0) {
        state_.legs[(input_count + i) * word_count_ + bit / 64] |=
            Word{1} << (bit % 64);
      }
    }
  }
  state_.active.assign(word_count_, ~Word{0});
  state_.slice_bits = 0;
  for (const int32_t index : sliced) {
    if (bits[index] >= 0) Toggle(bits[index]);
  }
  Measure();
  Fit(0, random);
  TakeBack();
}

void SliceAnnealer::Measure() {
  total_ = 0;
  fits_ = true;
  const size_t input_count = network_.inputs.size();
  for (size_t i = input_count; i < state_.nodes.size(); ++i) {
    Node& node = state_.nodes[i];
    const Word* legs = LegsOf(static_cast<int32_t>(i));
    const Word* a = LegsOf(node.left);
    const Word* b = LegsOf(node.right);
    double all = 0, kept = 0;
    Word summed = 0;
    for (int w = 0; w < word_count_; ++w) {
      const Word active = state_.active[w];
      all += weights_[w] * std::popcount((a[w] | b[w]) & active);
      kept += weights_[w] * std::popcount(legs[w] & active);
      summed |= (a[w] | b[w]) & ~legs[w] & active;
    }
    node.bits = kept;
    node.score = SizeOf(all) * (summed != 0 ? 2 : 1);
    total_ += node.score;
    // The root is the whole result, whatever is sliced.
    fits_ &= kept <= max_bits_ || i + 1 == state_.nodes.size();
  }
}

double SliceAnnealer::Bits() const {
  return std::log2(total_) + state_.slice_bits;
}

void SliceAnnealer::TurnAt(int32_t top, double temperature, Random& random) {
  std::vector<Node>& nodes = state_.nodes;
  const uint64_t random_bits = random.Next();
  // ((moved, stays), other) becomes ((other, stays), moved).
  int32_t turned = nodes[top].left, other = nodes[top].right;
  const auto is_input = [&](int32_t node) { return nodes[node].left < 0; };
  if (is_input(turned) || (!is_input(other) && (random_bits & 1) != 0)) {
    std::swap(turned, other);
  }
  if (is_input(turned)) return;
  int32_t moved = nodes[turned].left, stays = nodes[turned].right;
  if ((random_bits & 2) != 0) std::swap(moved, stays);
  const Word* const legs_top = LegsOf(top);
  const Word* const legs_other = LegsOf(other);
  const Word* const legs_stays = LegsOf(stays);
  const Word* const legs_moved = LegsOf(moved);
  double inner = 0, result = 0, outer = 0;
  Word inner_summed = 0, outer_summed = 0;
  for (int w = 0; w < word_count_; ++w) {
    const Word active = state_.active[w];
    const Word both = (legs_other[w] | legs_stays[w]) & active;
    const Word kept = both & (legs_moved[w] | legs_top[w]);
    inner += weights_[w] * std::popcount(both);
    result += weights_[w] * std::popcount(kept);
    const Word all = (kept | legs_moved[w]) & active;
    outer += weights_[w] * std::popcount(all);
    inner_summed |= both & ~kept;
    outer_summed |= all & ~legs_top[w];
  }
  if (result > max_bits_ && result > nodes[turned].bits) return;
  const double inner_score = SizeOf(inner) * (inner_summed != 0 ? 2 : 1);
  const double outer_score = SizeOf(outer) * (outer_summed != 0 ? 2 : 1);
  const double before = nodes[top].score + nodes[turned].score;
  const double after = inner_score + outer_score;
  if (after > before &&
      std::log2(after / before) > -temperature * std::log(random.Unit())) {
    return;
  }
  Word* const legs =
      state_.legs.data() + static_cast<size_t>(turned) * word_count_;
  for (int w = 0; w < word_count_; ++w) {
    legs[w] = (legs_other[w] | legs_stays[w]) & (legs_moved[w] | legs_top[w]);
  }
  nodes[turned] = {other, stays, result, inner_score};
  nodes[top].left = turned;
  nodes[top].right = moved;
  nodes[top].score = outer_score;
  total_ += after - before;
}

int32_t SliceAnnealer::ChooseSlice(double noise, Random& random) {
  std::ranges::fill(shares_, 0);
  std::ranges::fill(covers_, 0);
  double excess = 0;
  for (size_t i = network_.inputs.size(); i < state_.nodes.size(); ++i) {
    const Node& node = state_.nodes[i];
    const Word* legs = LegsOf(static_cast<int32_t>(i));
    const Word* a = LegsOf(node.left);
    const Word* b = LegsOf(node.right);
    const bool is_root = i + 1 == state_.nodes.size();
    const double over = is_root ? 0 : std::max(0.0, node.bits - max_bits_);
    excess += over;
    for (int w = 0; w < word_count_; ++w) {
      for (Word left = (a[w] | b[w]) & state_.active[w]; left != 0;
           left &= left - 1) {
        shares_[64 * w + std::countr_zero(left)] += node.score;
      }
      if (over <= 0) continue;
      for (Word left = legs[w] & state_.active[w]; left != 0;
           left &= left - 1) {
        const int bit = 64 * w + std::countr_zero(left);
        covers_[bit] += std::min(over, WeightOf(bit));
      }
    }
  }
  int32_t best = -1;
  double least = std::numeric_limits<double>::infinity();
  for (size_t bit = 0; bit < covers_.size(); ++bit) {
    if (covers_[bit] <= 0) continue;
    const double weight = WeightOf(static_cast<int32_t>(bit));
    const double extent = std::exp2(weight);
    const double added = std::log2(
        std::max(extent * total_ - shares_[bit] * (extent - 1), total_) /
        total_);
    double key = (added + kLeastAdded) / (covers_[bit] / excess);
    if (noise > 0) key *= std::exp(-noise * random.Gumbel());
    if (key < least) {
      least = key;
      best = static_cast<int32_t>(bit);
    }
  }
  return best;
}

void SliceAnnealer::Fit(double noise, Random& random) {
  while (!fits_) {
    const int32_t bit = ChooseSlice(noise, random);
    if (bit < 0) return;
    Toggle(bit);
    Measure();
  }
}

void SliceAnnealer::TakeBack() {
  if (!fits_) return;
  while (true) {
    // What would not fit any more with one more index of a result.
    std::vector<Word> needed(word_count_);
    for (size_t i = network_.inputs.size(); i + 1 < state_.nodes.size(); ++i) {
      const Node& node = state_.nodes[i];
      const Word* legs = LegsOf(static_cast<int32_t>(i));
      for (int w = 0; w < word_count_; ++w) {
        if (node.bits + weights_[w] > max_bits_) needed[w] |= legs[w];
      }
    }
    int32_t freed = -1;
    for (size_t bit = 0; bit < indices_.size(); ++bit) {
      if (indices_[bit] < 0 || IsActive(static_cast<int32_t>(bit))) continue;
      if ((needed[bit / 64] >> (bit % 64) & 1) == 0) {
        freed = static_cast<int32_t>(bit);
        break;
      }
    }
    if (freed < 0) return;
    Toggle(freed);
    Measure();
  }
}

void SliceAnnealer::ExchangeSlices(double temperature, Random& random) {
  std::vector<int32_t> sliced;
  for (size_t bit = 0; bit < indices_.size(); ++bit) {
    if (indices_[bit] >= 0 && !IsActive(static_cast<int32_t>(bit))) {
      sliced.push_back(static_cast<int32_t>(bit));
    }
  }
  if (sliced.empty()) return;
  const std::vector<Word> active = state_.active;
  const double slice_bits = state_.slice_bits;
  const double before = Bits();
  Toggle(sliced[random.Below(static_cast<int>(sliced.size()))]);
  Measure();
  Fit(kSliceNoise, random);
  TakeBack();
  const double added = Bits() - before;
  if (!fits_ || (added > 0 && added > -temperature * std::log(random.Unit()))) {
    state_.active = active;
    state_.slice_bits = slice_bits;
    Measure();
  }
}

void SliceAnnealer::Anneal(const Cooling& cooling, Random& random,
                           const Deadline& deadline) {
  best_ = state_;
  double least = fits_ ? Bits() : std::numeric_limits<double>::infinity();
  const auto node_count = static_cast<int32_t>(state_.nodes.size());
  const auto input_count = static_cast<int32_t>(network_.inputs.size());
  for (int sweep = 0; sweep < cooling.sweep_count && !deadline.IsPast();
       ++sweep) {
    const double temperature =
        cooling.hottest *
        std::pow(cooling.coldest / cooling.hottest,
                 static_cast<double>(sweep) / cooling.sweep_count);
    for (int32_t at = input_count; at < node_count; ++at) {
      TurnAt(at, temperature, random);
    }
    if (sweep % 2 == 0) {
      ExchangeSlices(temperature, random);
    } else {
      // Sums of differences drift.
      Measure();
    }
    if (fits_ && Bits() < least - kEpsilon) {
      least = Bits();
      best_ = state_;
    }
  }
  state_ = best_;
  Measure();
}

ContractionTree SliceAnnealer::tree() const {
  ContractionTree tree;
  const size_t input_count = network_.inputs.size();
  if (state_.nodes.size() <= input_count) return tree;
  std::vector<int32_t> order,
      open = {static_cast<int32_t>(state_.nodes.size()) - 1};
  while (!open.empty()) {
    const int32_t at = open.back();
    open.pop_back();
    const Node& node = state_.nodes[at];
    if (node.left < 0) continue;
    order.push_back(at);
    open.push_back(node.left);
    open.push_back(node.right);
  }
  std::vector<int32_t> numbers(state_.nodes.size());
  for (size_t i = 0; i < input_count; ++i) numbers[i] = static_cast<int32_t>(i);
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    const Node& node = state_.nodes[*at];
    tree.steps.push_back(
        std::minmax({numbers[node.left], numbers[node.right]}));
    numbers[*at] = static_cast<int32_t>(input_count + tree.steps.size() - 1);
  }
  return tree;
}

std::vector<int32_t> SliceAnnealer::sliced() const {
  std::vector<int32_t> sliced;
  for (size_t bit = 0; bit < indices_.size(); ++bit) {
    if (indices_[bit] >= 0 && !IsActive(static_cast<int32_t>(bit))) {
      sliced.push_back(indices_[bit]);
    }
  }
  std::ranges::sort(sliced);
  return sliced;
}

}  // namespace tensord::core
