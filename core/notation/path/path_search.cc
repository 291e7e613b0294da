#include "core/notation/path/path_search.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/notation/path/optimal_tree.h"

namespace tensord::core {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// How many flops a second a product is thought to run at.
constexpr double kFlopsPerSecond = 1e11;

/// Of a time that is given, what goes to finding a tree; the rest to annealing
/// it, with its slices.
constexpr double kTreeShare = 0.4;
/// The same where slices matter more.
constexpr double kLimitedTreeShare = 0.1;

/// Leaves of the parts that are searched in full when trees are mended.
constexpr int kPartLeaves = 8;

/// Of many inputs: see PathOptions::time_budget.
constexpr absl::Duration kLeastBudget = absl::Milliseconds(100);
constexpr absl::Duration kMostBudget = absl::Seconds(2);

/// Of a round of random search.
constexpr int kGreedyTrials = 4;
constexpr int kAnnealSweeps = 60;  // times rounds in vain, up to
constexpr int kMostAnnealSweeps = 600;

/// Rounds in vain after which random search ends.
constexpr int kPatience = 48;

}  // namespace

PathSearch::PathSearch(const Network& network, const PathOptions& options)
    : options_(options),
      graph_(GraphOf(network)),
      random_(options.seed),
      deadline_(options.time_budget, options.stop),
      greedy_(graph_),
      partition_(graph_),
      mender_(graph_),
      best_score_(kInfinity),
      best_method_(PathMethod::kGreedy) {}

Path PathSearch::Find() {
  if (graph_.input_count() > 1) {
    FindGreedily();
    // A path to begin with is better than what is found in short.
    const bool goes_on = options_.start.has_value();
    const bool is_small = graph_.input_count() <= kOptimalInputLimit;
    switch (options_.method) {
      case PathMethod::kGreedy: break;
      case PathMethod::kOptimal: FindOptimal(); break;
      case PathMethod::kRandomGreedy:
      case PathMethod::kPartition:
        if (!goes_on) FindAtRandom();
        break;
      case PathMethod::kAuto:
      case PathMethod::kGiven:
      case PathMethod::kAnnealing:
        if (is_small) {
          FindOptimal();
        } else if (!goes_on) {
          FindAtRandom();
        }
    }
  }
  found_ = Deadline::Clock::now();
  Path path;
  if (!best_.nodes.empty()) path.tree = ContractionTreeOf(best_);
  path.method = best_method_;
  path.tried_count = tried_count_;
  return path;
}

void PathSearch::Offer(SearchTree tree, PathMethod method) {
  const double score = tree.Score();
  if (score >= best_score_) return;
  best_ = std::move(tree);
  best_score_ = score;
  best_method_ = method;
}

void PathSearch::FindGreedily() {
  const Steps steps = greedy_.Find({}, random_);
  ++tried_count_;
  Offer(TreeOf(graph_, steps), PathMethod::kGreedy);
}

void PathSearch::FindOptimal() {
  best_method_ = PathMethod::kOptimal;
  SearchTree mended = best_;
  mender_.Sweep(mended, kPartLeaves, nullptr,
                Deadline(absl::InfiniteDuration()));
  Offer(std::move(mended), PathMethod::kOptimal);
  OptimalSearch optimal;
  std::vector<const Legs*> inputs;
  for (const Legs& legs : graph_.inputs) inputs.push_back(&legs);
  const Steps steps = optimal.Find(graph_, inputs, best_score_ * (1 + 1e-9));
  ++tried_count_;
  if (!steps.empty()) Offer(TreeOf(graph_, steps), PathMethod::kOptimal);
}

SearchTree PathSearch::TryGreedily(int trial_count) {
  Steps best;
  double bound = kInfinity;
  for (int i = 0; i < trial_count; ++i) {
    const GreedyWeights weights{.alpha = 0.1 + 1.6 * random_.Unit(),
                                .temperature = random_.Between(1e-3, 2)};
    Steps steps = greedy_.Find(weights, random_, bound);
    ++tried_count_;
    if (!steps.empty()) {
      best = std::move(steps);
      bound = greedy_.score();
    }
    if (deadline_.IsPast()) break;
  }
  return TreeOf(graph_, best);
}

SearchTree PathSearch::TryPartition() {
  const PartitionWeights weights{
      .imbalance = random_.Between(0.02, 1),
      .small_part = 2 + random_.Below(12),
  };
  ++tried_count_;
  return TreeOf(graph_, partition_.Find(weights, random_));
}

absl::Duration PathSearch::Budget() const {
  if (options_.time_budget > absl::ZeroDuration()) {
    const bool is_limited =
        std::min(options_.max_peak, options_.max_result) < kInfinity;
    return options_.time_budget * (is_limited ? kLimitedTreeShare : kTreeShare);
  }
  const int count = graph_.input_count();
  return std::clamp(absl::Seconds(best_score_ / kFlopsPerSecond / 10),
                    std::min(count * absl::Milliseconds(1), kLeastBudget),
                    std::min(count * absl::Milliseconds(10), kMostBudget));
}

Deadline PathSearch::SlicingDeadline(double share) const {
  if (options_.method == PathMethod::kGreedy) return Deadline(found_, nullptr);
  const absl::Duration budget = Budget();
  if (options_.time_budget <= absl::ZeroDuration()) {
    return Deadline(found_ + absl::ToChronoNanoseconds(budget * share),
                    options_.stop);
  }
  const absl::Duration all = options_.time_budget;
  if (all >= absl::Hours(1000)) return Deadline(all, options_.stop);
  return Deadline(
      begun_ + absl::ToChronoNanoseconds(budget + (all - budget) * share),
      options_.stop);
}

void PathSearch::FindAtRandom() {
  deadline_ = Deadline(Budget(), options_.stop);
  for (int idle = 0, round = 0; idle < kPatience && !deadline_.IsPast();
       ++idle, ++round) {
    const double before = best_score_;
    const bool cuts = options_.method == PathMethod::kPartition ||
                      (options_.method == PathMethod::kAuto && round % 2 == 1);
    SearchTree tree = cuts ? TryPartition() : TryGreedily(kGreedyTrials);
    mender_.Mend(tree, kPartLeaves, 0, random_, deadline_);
    Offer(tree, cuts ? PathMethod::kPartition : PathMethod::kRandomGreedy);
    const int sweeps = std::min(kAnnealSweeps * (idle + 1), kMostAnnealSweeps);
    mender_.Anneal(tree, sweeps, 1, 0.03, random_, deadline_);
    mender_.Mend(tree, kPartLeaves, 0, random_, deadline_);
    Offer(std::move(tree),
          cuts ? PathMethod::kPartition : PathMethod::kRandomGreedy);
    if (best_score_ < before * (1 - 1e-9)) idle = -1;
    if (options_.time_budget <= absl::ZeroDuration()) {
      // A better tree shortens what may be spent on it.
      deadline_ =
          Deadline(begun_ + absl::ToChronoNanoseconds(Budget()), options_.stop);
    }
  }
}

}  // namespace tensord::core
