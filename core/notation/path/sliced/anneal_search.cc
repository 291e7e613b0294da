#include "core/notation/path/sliced/anneal_search.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

#include "core/notation/path/greedy.h"
#include "core/notation/path/partition.h"

namespace tensord::core {
namespace {

/// Trees that are kept to be annealed again, and rounds that run at a time.
constexpr int kPoolSize = 8;

/// New trees of the first cycle.
constexpr int kFirstCount = 16;

/// Cycles in vain after which the search ends: as many, or one for so many
/// inputs.
constexpr int kIdleCycles = 2;
constexpr int kInputsPerCycle = 16;

/// Of a new tree before it is sliced, then with its slices, and of trees that
/// are annealed again; how hot the latter begin is drawn.
constexpr Cooling kUnslicedCooling = {
    .sweep_count = 100, .hottest = 1, .coldest = 0.05};
constexpr Cooling kNewCooling = {
    .sweep_count = 1000, .hottest = 3, .coldest = 0.15};
constexpr Cooling kAgainCooling = {.sweep_count = 2000, .coldest = 0.1};

/// What is left of the limit of the peak for other results than the largest,
/// in factors of two; round by round.
constexpr double kSlacks[] = {1, 1.6, 0.3};

/// Words of the indices of all nodes of a tree beyond which it is too large.
constexpr size_t kMostWords = size_t{1} << 22;

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// Processor time of this thread since it began.
int64_t ThreadNanoseconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

AnnealSearch::AnnealSearch(const Network& network, const AnnealOptions& options)
    : network_(network), options_(options), graph_(GraphOf(network)) {
  for (const int32_t index : network.output) {
    whole_ *= static_cast<double>(network.extents[index]);
  }
}

bool AnnealSearch::IsBetter(const SlicedTree& a, const SlicedTree& b) const {
  const bool a_fits = options_.limits.Allow(a.cost);
  const bool b_fits = options_.limits.Allow(b.cost);
  if (a_fits != b_fits) return a_fits;
  return a_fits ? a.cost.flops < b.cost.flops : a.cost.peak < b.cost.peak;
}

SlicedTree AnnealSearch::Find(SlicedTree start, const Deadline& deadline) {
  best_ = std::move(start);
  const int input_count = graph_.input_count();
  if (input_count < 3 ||
      2 * network_.inputs.size() * (network_.extents.size() / 64 + 1) >
          kMostWords) {
    return best_;
  }
  if (!options_.limits.Allow(best_.cost)) {
    SliceAnnealer annealer = NewAnnealer(kSlacks[0]);
    Random random(options_.seed);
    annealer.Load(best_.tree, best_.sliced, random);
    SlicedTree sliced = Finish(annealer, random);
    if (IsBetter(sliced, best_)) best_ = std::move(sliced);
  }
  const int patience = std::max(kIdleCycles, input_count / kInputsPerCycle);
  pool_.assign(1, best_);
  int count = kFirstCount;
  for (int idle = 0; idle < patience && !deadline.IsPast(); ++idle) {
    const SlicedTree before = best_;
    Renew(count, deadline);
    AnnealAgain(2 * count, deadline);
    Polish(deadline);
    if (IsBetter(best_, before)) idle = -1;
    pool_.clear();
    if (count < 1024) count *= 2;
  }
  return best_;
}

void AnnealSearch::Renew(int count, const Deadline& deadline) {
  for (int i = 0; i < count && !deadline.IsPast(); i += kPoolSize) {
    for (SlicedTree& tree :
         RunRounds(std::vector<const SlicedTree*>(kPoolSize), deadline)) {
      pool_.push_back(std::move(tree));
    }
    SortPool();
  }
}

void AnnealSearch::AnnealAgain(int count, const Deadline& deadline) {
  for (int i = 0; i < count && !deadline.IsPast() && !pool_.empty();
       i += kPoolSize) {
    // Half of them for a quarter of the rounds, and so on.
    const size_t most = kPoolSize >> (4 * i / count);
    if (pool_.size() > most) pool_.resize(most);
    std::vector<const SlicedTree*> from;
    for (int k = 0; k < kPoolSize; ++k) {
      from.push_back(&pool_[k % pool_.size()]);
    }
    std::vector<SlicedTree> trees = RunRounds(from, deadline);
    for (size_t k = 0; k < trees.size(); ++k) {
      SlicedTree& place = pool_[k % pool_.size()];
      if (IsBetter(trees[k], place)) place = std::move(trees[k]);
    }
    SortPool();
  }
}

void AnnealSearch::SortPool() {
  std::ranges::stable_sort(
      pool_, [&](const auto& a, const auto& b) { return IsBetter(a, b); });
  if (pool_.size() > kPoolSize) pool_.resize(kPoolSize);
  // Of no round there is nothing when the time runs out.
  if (!pool_.empty() && IsBetter(pool_[0], best_)) best_ = pool_[0];
}

std::vector<SlicedTree> AnnealSearch::RunRounds(
    const std::vector<const SlicedTree*>& from, const Deadline& deadline) {
  std::vector<SlicedTree> results(from.size());
  std::vector<char> is_done(from.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < from.size(); i = next++) {
      if (deadline.IsPast()) return;
      results[i] =
          RunRound(round_ + static_cast<int64_t>(i), from[i], deadline);
      is_done[i] = 1;
    }
  };
  const auto help = [&] {
    work();
    if (options_.helper_nanoseconds != nullptr) {
      *options_.helper_nanoseconds += ThreadNanoseconds();
    }
  };
  {
    std::vector<std::jthread> threads;
    const int most = static_cast<int>(from.size());
    try {
      for (int i = 1; i < std::min(options_.thread_count, most); ++i) {
        threads.emplace_back(help);
      }
    } catch (const std::system_error&) {
      // There are no more threads: those that there are do it.
    }
    work();
  }
  round_ += static_cast<int64_t>(from.size());
  std::vector<SlicedTree> done;
  for (size_t i = 0; i < results.size(); ++i) {
    // What the time cut off stands for what it came from.
    if (is_done[i] != 0) ++tried_count_;
    if (is_done[i] != 0 || from[i] != nullptr) {
      done.push_back(is_done[i] != 0 ? std::move(results[i]) : *from[i]);
    }
  }
  return done;
}

ContractionTree AnnealSearch::NewTree(bool cuts, Random& random) const {
  if (cuts) {
    const PartitionWeights weights{
        .imbalance = random.Between(0.02, 1),
        .small_part = 2 + random.Below(12),
    };
    return ContractionTreeOf(
        TreeOf(graph_, PartitionSearch(graph_).Find(weights, random)));
  }
  const GreedyWeights weights{.alpha = 0.1 + 1.6 * random.Unit(),
                              .temperature = random.Between(1e-3, 2)};
  return ContractionTreeOf(
      TreeOf(graph_, GreedySearch(graph_).Find(weights, random)));
}

SliceAnnealer AnnealSearch::NewAnnealer(double slack) const {
  const double room = std::max(1.0, options_.limits.peak - whole_);
  return SliceAnnealer(network_,
                       std::min(std::log2(options_.limits.largest),
                                std::max(0.0, std::log2(room) - slack)));
}

SlicedTree AnnealSearch::RunRound(int64_t round, const SlicedTree* from,
                                  const Deadline& deadline) const {
  constexpr uint64_t kSpread = 0x632be59bd9b4e019;
  Random random(options_.seed + kSpread * static_cast<uint64_t>(round + 1));
  SliceAnnealer annealer = NewAnnealer(kSlacks[round % std::size(kSlacks)]);
  if (from != nullptr) {
    annealer.Load(from->tree, from->sliced, random);
    Cooling cooling = kAgainCooling;
    cooling.hottest = random.Between(0.3, 2);
    annealer.Anneal(cooling, random, deadline);
    return Finish(annealer, random);
  }
  ContractionTree tree = NewTree(round % 4 != 0, random);
  if (annealer.is_limited()) {
    SliceAnnealer unsliced(network_, kUnlimited);
    unsliced.Load(tree, {}, random);
    unsliced.Anneal(kUnslicedCooling, random, deadline);
    tree = unsliced.tree();
  }
  annealer.Load(tree, {}, random);
  annealer.Anneal(kNewCooling, random, deadline);
  return Finish(annealer, random);
}

SlicedTree AnnealSearch::Finish(const SliceAnnealer& annealer,
                                Random& random) const {
  SlicedTree tree = WithSlices(network_, annealer.tree(), annealer.sliced());
  return SliceOn(network_, std::move(tree), options_.limits.peak, 0, random);
}

void AnnealSearch::Polish(const Deadline& deadline) {
  Random random(options_.seed);
  SlicedTree mended = MendSliced(network_, best_, 0, random, deadline);
  if (IsBetter(mended, best_)) best_ = std::move(mended);
}

}  // namespace tensord::core
