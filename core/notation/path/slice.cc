#include "core/notation/path/slice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/notation/path/mend.h"
#include "core/notation/path/order_steps.h"
#include "core/notation/path/search_graph.h"
#include "core/notation/path/search_tree.h"

namespace tensord::core {
namespace {

/// Leaves of the parts that are searched in full when trees are mended.
constexpr int kPartLeaves = 8;

/// Slicings in vain after which the search ends.
constexpr int kIdleSlices = 64;

/// A tree as slicing sees it: sizes by step, and in which steps an index is.
class Slicer {
 public:
  Slicer(const Network& network, const ContractionTree& tree)
      : network_(network),
        tree_(tree),
        results_(ResultsOf(network, tree)),
        flops_(tree.steps.size(), 1),
        sizes_(tree.steps.size(), 1),
        steps_(network.extents.size()),
        result_steps_(network.extents.size()) {
    const size_t input_count = network.inputs.size();
    for (const int32_t index : network.output) whole_ *= Extent(index);
    for (size_t i = 0; i < tree.steps.size(); ++i) {
      for (const int32_t child : {tree.steps[i].first, tree.steps[i].second}) {
        const Network::Indices& indices =
            child < static_cast<int32_t>(input_count)
                ? network.inputs[child]
                : results_[child - input_count];
        for (const int32_t index : indices) {
          std::vector<int32_t>& steps = steps_[index];
          if (!steps.empty() && steps.back() == static_cast<int32_t>(i)) {
            continue;
          }
          steps.push_back(static_cast<int32_t>(i));
          flops_[i] *= Extent(index);
        }
      }
      for (const int32_t index : results_[i]) {
        result_steps_[index].push_back(static_cast<int32_t>(i));
        sizes_[i] *= Extent(index);
      }
    }
  }

  /// The step at which most elements are alive, and how many, without the
  /// result itself.
  std::pair<int32_t, double> PeakStep() const {
    std::pair<int32_t, double> peak = {-1, -1};
    double alive = 0;
    for (size_t i = 0; i + 1 < tree_.steps.size(); ++i) {
      alive += sizes_[i];
      if (alive > peak.second) peak = {static_cast<int32_t>(i), alive};
      alive -=
          SizeOfNode(tree_.steps[i].first) + SizeOfNode(tree_.steps[i].second);
    }
    return peak;
  }

  double whole() const { return whole_; }

  void Slice(int32_t index) {
    for (const int32_t step : steps_[index]) flops_[step] /= Extent(index);
    for (const int32_t step : result_steps_[index]) {
      sizes_[step] /= Extent(index);
    }
  }

  /// The index to slice that adds the fewest flops for what it takes off what
  /// is alive at `step`, or -1.
  int32_t Choose(int32_t step, absl::Span<const int32_t> sliced, double noise,
                 Random& random) const {
    std::vector<double> shares(network_.extents.size());  // of what is alive
    double alive = 0;
    const auto input_count = static_cast<int32_t>(network_.inputs.size());
    std::vector<bool> is_alive(tree_.steps.size());
    for (int32_t i = 0; i <= step; ++i) {
      is_alive[i] = true;
      if (i == 0) continue;
      for (const int32_t child :
           {tree_.steps[i - 1].first, tree_.steps[i - 1].second}) {
        if (child >= input_count) is_alive[child - input_count] = false;
      }
    }
    for (int32_t i = 0; i <= step; ++i) {
      if (!is_alive[i]) continue;
      alive += sizes_[i];
      for (const int32_t index : results_[i]) shares[index] += sizes_[i];
    }
    double flops = 0;
    for (const double of_step : flops_) flops += of_step;
    int32_t best = -1;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < shares.size(); ++i) {
      const auto index = static_cast<int32_t>(i);
      const double extent = Extent(index);
      if (shares[i] == 0 || extent == 1 ||
          std::ranges::find(sliced, index) != sliced.end()) {
        continue;
      }
      double unchanged = flops;
      for (const int32_t at : steps_[i]) unchanged -= flops_[at];
      unchanged = std::max(unchanged, 0.0);
      const double added =
          std::log2((flops + unchanged * (extent - 1)) / flops);
      const double left = alive - shares[i] * (1 - 1 / extent);
      double key = (added + 1e-3) / std::log2(alive / left);
      if (noise > 0) key *= std::exp(noise * random.Gumbel());
      if (key < least) {
        least = key;
        best = index;
      }
    }
    return best;
  }

 private:
  double Extent(int32_t index) const {
    return static_cast<double>(network_.extents[index]);
  }
  double SizeOfNode(int32_t node) const {
    const auto input_count = static_cast<int32_t>(network_.inputs.size());
    return node < input_count ? 0 : sizes_[node - input_count];
  }

  const Network& network_;
  const ContractionTree& tree_;
  const std::vector<Network::Indices> results_;
  std::vector<double> flops_;  // (step) of one slice
  std::vector<double> sizes_;  // (step) of one slice
  std::vector<std::vector<int32_t>> steps_, result_steps_;  // (index)
  double whole_ = 1;
};

/// Takes back slices while the peak stays within the limit.
void TakeBack(const Network& network, double max_peak, SlicedTree& best) {
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    SlicedTree better = best;
    for (size_t i = 0; i < best.sliced.size(); ++i) {
      std::vector<int32_t> fewer = best.sliced;
      fewer.erase(fewer.begin() + i);
      SlicedTree without = WithSlices(network, best.tree, std::move(fewer));
      if (without.cost.peak <= max_peak &&
          without.cost.flops <= better.cost.flops) {
        better = std::move(without);
        has_changed = true;
      }
    }
    if (has_changed) best = std::move(better);
  }
}

bool IsBetter(const SlicedTree& a, const SlicedTree& b, double max_peak) {
  const bool a_fits = a.cost.peak <= max_peak;
  const bool b_fits = b.cost.peak <= max_peak;
  if (a_fits != b_fits) return a_fits;
  return a_fits ? a.cost.flops < b.cost.flops : a.cost.peak < b.cost.peak;
}

/// Slices index by index and mends the tree after each.
SlicedTree SliceAndMend(const Network& network, SlicedTree tree,
                        double max_peak, double noise, Random& random,
                        const Deadline& deadline) {
  while (tree.cost.peak > max_peak && !deadline.IsPast()) {
    Slicer slicer(network, tree.tree);
    for (const int32_t index : tree.sliced) slicer.Slice(index);
    const int32_t step = slicer.PeakStep().first;
    if (step < 0) break;
    const int32_t index = slicer.Choose(step, tree.sliced, noise, random);
    if (index < 0) break;
    tree.sliced.push_back(index);
    tree = MendSliced(network, tree, 0, random, deadline);
  }
  return SliceOn(network, std::move(tree), max_peak, noise, random);
}

}  // namespace

SlicedTree WithSlices(const Network& network, const ContractionTree& tree,
                      std::vector<int32_t> sliced) {
  std::ranges::sort(sliced);
  SlicedTree result{OrderForPeak(network, tree, sliced), std::move(sliced)};
  result.cost = CostOf(network, result.tree, result.sliced);
  return result;
}

SlicedTree SliceOn(const Network& network, SlicedTree tree, double max_peak,
                   double noise, Random& random) {
  if (tree.cost.peak <= max_peak) return tree;
  Slicer slicer(network, tree.tree);
  std::vector<int32_t> sliced = tree.sliced;
  for (const int32_t index : sliced) slicer.Slice(index);
  while (true) {
    const auto [step, alive] = slicer.PeakStep();
    if (step < 0 || (alive + slicer.whole() <= max_peak && !sliced.empty())) {
      break;
    }
    const int32_t index = slicer.Choose(step, sliced, noise, random);
    if (index < 0) break;
    slicer.Slice(index);
    sliced.push_back(index);
  }
  SlicedTree result = WithSlices(network, tree.tree, std::move(sliced));
  if (result.cost.peak > max_peak) {
    return result.cost.peak < tree.cost.peak ? result : tree;
  }
  TakeBack(network, max_peak, result);
  return result;
}

SlicedTree MendSliced(const Network& network, const SlicedTree& tree,
                      int anneal_sweeps, Random& random,
                      const Deadline& deadline) {
  const SearchGraph graph = GraphOf(network, tree.sliced);
  SearchTree search_tree = TreeOf(graph, tree.tree.steps);
  Mender mender(graph);
  if (anneal_sweeps > 0) {
    mender.Anneal(search_tree, anneal_sweeps, 0.5, 0.02, random, deadline);
  }
  mender.Mend(search_tree, kPartLeaves, 0, random, deadline);
  return WithSlices(network, ContractionTreeOf(search_tree), tree.sliced);
}

SlicedTree SliceGreedily(const Network& network, const ContractionTree& tree,
                         double max_peak, double noise, Random& random) {
  return SliceOn(network, WithSlices(network, tree, {}), max_peak, noise,
                 random);
}

absl::StatusOr<SlicedTree> FindSlices(const Network& network,
                                      const ContractionTree& tree,
                                      double max_peak, Random& random,
                                      const Deadline& deadline) {
  const SlicedTree unsliced = WithSlices(network, tree, {});
  SlicedTree best = SliceOn(network, unsliced, max_peak, 0, random);
  for (int idle = 0; idle < kIdleSlices && !deadline.IsPast(); ++idle) {
    const double noise = random.Between(0.02, 1);
    SlicedTree next;
    switch (random.Below(3)) {
      case 0: next = SliceOn(network, unsliced, max_peak, noise, random); break;
      case 1:
        next =
            SliceAndMend(network, unsliced, max_peak, noise, random, deadline);
        break;
      default:
        next = MendSliced(network, best, 50, random, deadline);
        next = SliceOn(network, std::move(next), max_peak, noise, random);
    }
    if (IsBetter(next, best, max_peak)) {
      best = std::move(next);
      idle = -1;
    }
  }
  if (best.cost.peak > max_peak) {
    absl::Status status = ResourceExhausted(
        "PATH_MEMORY_LIMIT", "no slicing of the product keeps its results to ",
        max_peak, " elements at a time; the least found is ", best.cost.peak);
    status.SetPayload(kLeastPeak, absl::Cord(absl::StrCat(best.cost.peak)));
    return status;
  }
  return best;
}

}  // namespace tensord::core
