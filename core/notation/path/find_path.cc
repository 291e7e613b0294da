#include "core/notation/path/find_path.h"

#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "core/base/status.h"
#include "core/notation/path/deadline.h"
#include "core/notation/path/order_steps.h"
#include "core/notation/path/path_search.h"
#include "core/notation/path/random.h"
#include "core/notation/path/slice.h"

namespace tensord::core {
namespace {

absl::StatusOr<Path> SlicedPath(const Network& network, Path path,
                                double max_peak, Random& random,
                                const Deadline& deadline) {
  path.tree = OrderForPeak(network, path.tree);
  path.cost = CostOf(network, path.tree);
  if (path.cost.peak <= max_peak) return path;
  TENSORD_ASSIGN_OR_RETURN(
      SlicedTree sliced,
      FindSlices(network, path.tree, max_peak, random, deadline));
  path.tree = std::move(sliced.tree);
  path.sliced = std::move(sliced.sliced);
  path.cost = sliced.cost;
  return path;
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
  Path path = search.Find();
  return SlicedPath(network, std::move(path), options.max_peak, search.random(),
                    search.slicing_deadline());
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
