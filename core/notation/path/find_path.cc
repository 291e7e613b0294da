#include "core/notation/path/find_path.h"

#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/notation/path/deadline.h"
#include "core/notation/path/order_steps.h"
#include "core/notation/path/path_search.h"
#include "core/notation/path/random.h"
#include "core/notation/path/slice.h"
#include "core/notation/path/sliced/anneal_search.h"

namespace tensord::core {
namespace {

/// How much of the time for slices goes to slicing one tree.
constexpr double kOneTreeShare = 0.25;

absl::Status ExceedsLimits(const SizeLimits& limits, const TreeCost& cost) {
  absl::Status status = ResourceExhausted(
      "PATH_MEMORY_LIMIT", "no slicing of the product keeps a result to ",
      limits.largest, " elements; the least found is ", cost.largest);
  status.SetPayload(kLeastPeak, absl::Cord(absl::StrCat(cost.peak)));
  return status;
}

void Take(SlicedTree tree, Path& path) {
  path.tree = std::move(tree.tree);
  path.sliced = std::move(tree.sliced);
  path.cost = tree.cost;
}

absl::StatusOr<Path> SlicedPath(const Network& network, Path path,
                                double max_peak, Random& random,
                                const Deadline& deadline) {
  path.tree = OrderForPeak(network, path.tree);
  path.cost = CostOf(network, path.tree);
  if (path.cost.peak <= max_peak) return path;
  TENSORD_ASSIGN_OR_RETURN(
      SlicedTree sliced,
      FindSlices(network, path.tree, max_peak, random, deadline));
  Take(std::move(sliced), path);
  return path;
}

/// Anneals what is not within the limits, or what there is time for.
void AnnealPath(const Network& network, const PathOptions& options,
                const Deadline& deadline, Path& path) {
  const SizeLimits limits{options.max_peak, options.max_result};
  const bool has_time = options.time_budget > absl::ZeroDuration();
  AnnealSearch anneal(network,
                      {.limits = limits,
                       .seed = options.seed,
                       .thread_count = has_time ? options.thread_count : 1,
                       .helper_nanoseconds = options.helper_nanoseconds});
  SlicedTree start{path.tree, path.sliced, path.cost};
  if (options.start) {
    const SlicedTree given =
        WithSlices(network, options.start->tree, options.start->sliced);
    if (anneal.IsBetter(given, start)) start = given;
  }
  SlicedTree found = anneal.Find(std::move(start), deadline);
  path.tried_count += anneal.tried_count();
  if (found.tree == path.tree && found.sliced == path.sliced) return;
  path.method = PathMethod::kAnnealing;
  Take(std::move(found), path);
}

}  // namespace

absl::string_view NameOf(PathMethod method) {
  switch (method) {
    case PathMethod::kAuto: return "auto";
    case PathMethod::kOptimal: return "optimal";
    case PathMethod::kGreedy: return "greedy";
    case PathMethod::kRandomGreedy: return "random_greedy";
    case PathMethod::kPartition: return "partition";
    case PathMethod::kGiven: return "given";
    case PathMethod::kAnnealing: return "annealing";
  }
  return "";
}

absl::StatusOr<Path> FindPath(const Network& network,
                              const PathOptions& options) {
  const int input_count = static_cast<int>(network.inputs.size());
  if (options.method == PathMethod::kOptimal &&
      input_count > kOptimalInputLimit) {
    return InvalidArgument("PATH_SEARCH_TOO_LARGE",
                           "the optimal path of a product of ", input_count,
                           " operands was asked for, at most ",
                           kOptimalInputLimit, " are searched");
  }
  PathSearch search(network, options);
  const Path found = search.Find();
  absl::StatusOr<Path> path =
      SlicedPath(network, found, options.max_peak, search.random(),
                 search.SlicingDeadline(kOneTreeShare));
  const SizeLimits limits{options.max_peak, options.max_result};
  const bool is_exact = found.method == PathMethod::kOptimal;
  const bool is_greedy = options.method == PathMethod::kGreedy;
  const bool has_time = options.time_budget > absl::ZeroDuration();
  if (path.ok() && limits.Allow(path->cost) &&
      (is_greedy || (path->sliced.empty() && (is_exact || !has_time)))) {
    return path;
  }
  if (!path.ok() && is_greedy) return path;
  Path annealed;
  if (path.ok()) {
    annealed = *path;
  } else {
    annealed = found;
    annealed.cost = CostOf(network, found.tree);
  }
  AnnealPath(network, options, search.SlicingDeadline(1), annealed);
  if (limits.Allow(annealed.cost)) return annealed;
  return path.ok() ? ExceedsLimits(limits, annealed.cost) : path.status();
}

absl::StatusOr<Path> SlicePath(const Network& network, ContractionTree tree,
                               double max_peak) {
  Random random(0);
  Path path{
      .tree = std::move(tree), .method = PathMethod::kGiven, .tried_count = 1};
  return SlicedPath(network, std::move(path), max_peak, random,
                    Deadline(absl::ZeroDuration()));
}

double LeastPeakOf(const absl::Status& status) {
  double least = 0;
  const auto text = status.GetPayload(kLeastPeak);
  const bool is_known = text && absl::SimpleAtod(std::string(*text), &least);
  return is_known ? least : 0;
}

}  // namespace tensord::core
