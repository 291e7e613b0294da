#include "core/notation/path/optimal_tree.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tensord::core {
namespace {

constexpr double kUnreached = std::numeric_limits<double>::infinity();
/// Of square roots, so that the product of three stays finite.
constexpr double kHugeRoot = 1e96;

}  // namespace

Steps OptimalSearch::Find(const SearchGraph& graph,
                          absl::Span<const Legs* const> leaves, double bound) {
  leaf_count_ = static_cast<int>(leaves.size());
  ReadLegs(graph, leaves);
  FillHyperTables();
  MeasureSets();
  SearchSets(bound);

  Steps steps;
  const Set all = (Set{1} << leaf_count_) - 1;
  if (measures_[all].cost == kUnreached) return steps;
  // The sets of the tree, each before its parts; then read backwards.
  std::vector<Set> sets = {all};
  for (size_t i = 0; i < sets.size(); ++i) {
    for (const Set part : {splits_[sets[i]], sets[i] ^ splits_[sets[i]]}) {
      if (!std::has_single_bit(part)) sets.push_back(part);
    }
  }
  const auto number_of = [&](Set set) -> int32_t {
    if (std::has_single_bit(set)) return std::countr_zero(set);
    size_t place = 0;
    while (sets[place] != set) ++place;
    return static_cast<int32_t>(leaf_count_ + sets.size() - 1 - place);
  };
  for (auto set = sets.rbegin(); set != sets.rend(); ++set) {
    steps.emplace_back(number_of(splits_[*set]),
                       number_of(*set ^ splits_[*set]));
  }
  return steps;
}

void OptimalSearch::ReadLegs(const SearchGraph& graph,
                             absl::Span<const Legs* const> leaves) {
  if (incidence_.size() < static_cast<size_t>(graph.index_count())) {
    incidence_.resize(graph.index_count());
  }
  met_.clear();
  pair_bits_.assign(leaf_count_ * leaf_count_, 0);
  leaf_bits_.assign(leaf_count_, 0);
  neighbours_.assign(leaf_count_, 0);
  hypers_.clear();
  for (int i = 0; i < leaf_count_; ++i) {
    for (const Leg& leg : *leaves[i]) {
      Incidence& incidence = incidence_[leg.index];
      if (incidence.leaves == 0) met_.push_back(leg.index);
      incidence.leaves |= Set{1} << i;
      incidence.count += leg.count;
    }
  }
  for (const int32_t index : met_) {
    AddShared(graph, index, incidence_[index].leaves);
    incidence_[index] = {};
  }
}

void OptimalSearch::AddShared(const SearchGraph& graph, int32_t index,
                              Set leaves) {
  const bool is_outside = incidence_[index].count < graph.totals[index];
  const double bits = graph.bits[index];
  const int a = std::countr_zero(leaves);
  if (std::has_single_bit(leaves)) {
    leaf_bits_[a] += bits;
    return;
  }
  const Set others = leaves & (leaves - 1);
  if (std::has_single_bit(others) && !is_outside) {
    const int b = std::countr_zero(others);
    leaf_bits_[a] += bits;
    leaf_bits_[b] += bits;
    pair_bits_[a * leaf_count_ + b] += bits;
    pair_bits_[b * leaf_count_ + a] += bits;
    neighbours_[a] |= Set{1} << b;
    neighbours_[b] |= Set{1} << a;
    return;
  }
  for (Hyper& hyper : hypers_) {
    if (hyper.leaves == leaves && hyper.is_outside == is_outside) {
      hyper.bits += bits;
      return;
    }
  }
  hypers_.push_back({leaves, is_outside, bits});
}

void OptimalSearch::FillHyperTables() {
  const size_t byte_count = (hypers_.size() + 7) / 8;
  word_count_ = static_cast<int>((byte_count + 7) / 8);
  hyper_tables_.resize(byte_count * 256);
  for (size_t byte = 0; byte < byte_count; ++byte) {
    double* table = &hyper_tables_[byte * 256];
    double bits[256] = {};
    table[0] = 1;
    for (int value = 1; value < 256; ++value) {
      const size_t hyper = byte * 8 + std::countr_zero(unsigned(value));
      bits[value] = bits[value & (value - 1)];
      if (hyper < hypers_.size()) bits[value] += hypers_[hyper].bits;
      table[value] = SizeOf(bits[value]);
    }
  }
}

double OptimalSearch::HyperSize(const uint64_t* set) const {
  double size = 1;
  const double* table = hyper_tables_.data();
  const size_t byte_count = hyper_tables_.size() / 256;
  for (size_t byte = 0; byte < byte_count; ++byte, table += 256) {
    size *= table[(set[byte / 8] >> (byte % 8 * 8)) & 255];
  }
  return size;
}

void OptimalSearch::MeasureSets() {
  const size_t set_count = size_t{1} << leaf_count_;
  if (bits_.size() < set_count) {
    bits_.resize(set_count);
    measures_.resize(set_count);
    simple_roots_.resize(set_count);
    hyper_roots_.resize(set_count);
    adjacent_.resize(set_count);
    splits_.resize(set_count);
  }
  bits_[0] = 0;
  adjacent_[0] = 0;
  FindOpenHypers();
  for (Set set = 1; set < set_count; ++set) {
    const int leaf = std::countr_zero(set);
    const Set rest = set & (set - 1);
    double bits = bits_[rest] + leaf_bits_[leaf];
    for (Set near = neighbours_[leaf] & rest; near != 0; near &= near - 1) {
      bits -= 2 * pair_bits_[leaf * leaf_count_ + std::countr_zero(near)];
    }
    bits_[set] = bits;
    adjacent_[set] = adjacent_[rest] | neighbours_[leaf];
    double root = std::min(std::sqrt(SizeOf(bits)), kHugeRoot);
    if (word_count_ > 0) {
      simple_roots_[set] = root;
      hyper_roots_[set] = std::sqrt(HyperSize(&open_[set * word_count_]));
      root = std::min(root * hyper_roots_[set], kHugeRoot);
    }
    measures_[set].root = root;
  }
}

void OptimalSearch::FindOpenHypers() {
  if (word_count_ == 0) return;
  const size_t set_count = size_t{1} << leaf_count_;
  const size_t words = word_count_;
  if (open_.size() < set_count * words) {
    open_.resize(set_count * words);
    touched_.resize(set_count * words);
  }
  std::fill_n(touched_.begin(), set_count * words, 0);
  std::vector<uint64_t> outside(words);
  for (size_t i = 0; i < hypers_.size(); ++i) {
    const uint64_t bit = uint64_t{1} << (i % 64);
    if (hypers_[i].is_outside) outside[i / 64] |= bit;
    for (Set left = hypers_[i].leaves; left != 0; left &= left - 1) {
      touched_[(left & -left) * words + i / 64] |= bit;
    }
  }
  for (Set set = 1; set < set_count; ++set) {
    const Set rest = set & (set - 1);
    if (rest == 0) continue;
    for (size_t word = 0; word < words; ++word) {
      touched_[set * words + word] =
          touched_[rest * words + word] | touched_[(set ^ rest) * words + word];
    }
  }
  for (size_t set = 0; set < set_count; ++set) {
    const size_t others = set_count - 1 - set;
    for (size_t word = 0; word < words; ++word) {
      open_[set * words + word] =
          touched_[set * words + word] &
          (outside[word] | touched_[others * words + word]);
    }
  }
}

/// Whether the indices that lie within the set connect it.
bool OptimalSearch::SumsInEverySplit(Set set) const {
  for (Set reached = set & -set;;) {
    Set next = (reached | adjacent_[reached]) & set;
    for (int word = 0; word < word_count_; ++word) {
      const size_t at = set * word_count_ + word;
      for (uint64_t inside = touched_[at] & ~open_[at]; inside != 0;
           inside &= inside - 1) {
        const Set leaves = hypers_[word * 64 + std::countr_zero(inside)].leaves;
        if ((leaves & next) != 0) next |= leaves;
      }
    }
    if (next == set) return true;
    if (next == reached) return false;
    reached = next;
  }
}

double OptimalSearch::FlopsOf(const Target& target, Set a, Set b) const {
  bool sums = target.sums_always || (adjacent_[a] & b) != 0;
  double flops;
  if (word_count_ == 0) {
    flops = measures_[a].root * measures_[b].root * measures_[target.set].root;
  } else {
    flops = simple_roots_[a] * simple_roots_[b] * simple_roots_[target.set];
    const size_t words = word_count_;
    const double* table = hyper_tables_.data();
    for (size_t word = 0; word < words; ++word) {
      const uint64_t both = open_[a * words + word] | open_[b * words + word];
      sums |= (both & ~open_[target.set * words + word]) != 0;
      for (uint64_t left = both; left != 0; left >>= 8, table += 256) {
        flops *= table[left & 255];
      }
      table = hyper_tables_.data() + (word + 1) * 8 * 256;
    }
  }
  return std::min(flops, kHugeCost) * (sums ? 2 : 1);
}

void OptimalSearch::Try(Target& target, Set a, Set b) const {
  const double cost =
      measures_[a].cost + measures_[b].cost + FlopsOf(target, a, b);
  if (cost >= target.best) return;
  target.best = cost;
  target.split = a;
}

template <bool has_hypers>
bool OptimalSearch::MayBeBetter(const Target& target, Set a, Set b) const {
  const Measure& x = measures_[a];
  const Measure& y = measures_[b];
  const double parts = x.cost + y.cost;
  // The elements of both and of the result: each index counts twice and, if it
  // is a hyperindex of all three, thrice.
  double step = x.root * y.root * target.root;
  if constexpr (has_hypers) {
    if (parts + target.size >= target.best) return false;
    step /= std::min(std::min(hyper_roots_[a], hyper_roots_[b]),
                     hyper_roots_[target.set]);
  }
  return parts + step < target.best;
}

template <bool has_hypers>
void OptimalSearch::SearchSplits(Target& target) const {
  const Set low = target.set & -target.set;
  const Set rest = target.set ^ low;
  const std::vector<Set>& alive = alive_[std::countr_zero(low)];
  if (alive.size() < size_t{1} << std::popcount(rest)) {
    for (const Set a : alive) {
      if ((a & ~target.set) != 0) continue;
      const Set b = target.set ^ a;
      if (MayBeBetter<has_hypers>(target, a, b)) Try(target, a, b);
    }
    return;
  }
  for (Set b = rest; b != 0; b = (b - 1) & rest) {
    const Set a = target.set ^ b;
    if (MayBeBetter<has_hypers>(target, a, b)) Try(target, a, b);
  }
}

void OptimalSearch::SearchSets(double bound) {
  const Set all = (Set{1} << leaf_count_) - 1;
  alive_.resize(leaf_count_);
  for (int leaf = 0; leaf < leaf_count_; ++leaf) alive_[leaf].clear();
  for (Set set = 1; set <= all; ++set) {
    const int lowest = std::countr_zero(set);
    if (std::has_single_bit(set)) {
      measures_[set].cost = 0;
      alive_[lowest].push_back(set);
      continue;
    }
    measures_[set].cost = kUnreached;
    const double root = measures_[set].root;
    const double size = root * root;
    const double write = size * kWriteWeight;
    // The step that uses a set costs no less than its elements, and so does the
    // step that makes it.
    const double limit = set == all ? bound : bound - size;
    Target target{.set = set, .size = size, .best = limit - write};
    if (target.best <= size) continue;
    target.sums_always = SumsInEverySplit(set);
    target.root = root * (target.sums_always ? 2 : 1);
    if (word_count_ > 0) {
      SearchSplits<true>(target);
    } else {
      SearchSplits<false>(target);
    }
    if (target.split == 0) continue;
    splits_[set] = target.split;
    measures_[set].cost = target.best + write;
    alive_[lowest].push_back(set);
  }
}

}  // namespace tensord::core
