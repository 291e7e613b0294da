// The search for a good order in which to contract a product of tensors.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/notation/path/network.h"

namespace tensord::core {

/// Most inputs that kOptimal takes.
inline constexpr int kOptimalInputLimit = 16;

enum class PathMethod {
  kAuto,          // by the number of inputs and the time
  kOptimal,       // dynamic programming over all trees, outer products too
  kGreedy,        // cheapest pair first
  kRandomGreedy,  // the best of many greedy trees, mended by parts
  kPartition,     // the best of many trees from halving the network, likewise
  kGiven,         // not searched: the client's
  kAnnealing,     // found by annealing trees with their slices; not to ask for
};

/// "auto", "optimal", "greedy", "random_greedy", "partition", "given",
/// "annealing".
absl::string_view NameOf(PathMethod method);

/// A tree and what is sliced, from where a search may begin.
struct PathStart {
  ContractionTree tree;
  std::vector<int32_t> sliced;  // indices
};

/// The same as clients tell it; positions as TreeFromPositions() takes them.
struct NamedStart {
  std::vector<std::vector<int64_t>> steps;  // (step)(position)
  std::vector<std::string> sliced;          // labels

  bool operator==(const NamedStart&) const = default;
};

struct PathOptions {
  PathMethod method = PathMethod::kAuto;
  /// How long to search at random in all, beside what the cheapest search
  /// takes; less when searching was long in vain. Zero: a tenth of the time
  /// that the best tree so far is thought to run, within 1 to 10 milliseconds
  /// an input or, for many inputs, 0.1 to 2 seconds in all; and as long again
  /// for slices.
  absl::Duration time_budget = absl::ZeroDuration();
  /// Most elements of results of steps alive at a time (TreeCost::peak);
  /// indices are sliced to keep to it.
  double max_peak = std::numeric_limits<double>::infinity();
  /// Most elements of the result of a step (TreeCost::largest), likewise.
  double max_result = std::numeric_limits<double>::infinity();
  uint64_t seed = 0;
  /// Threads that search together where a time_budget is given.
  int thread_count = 1;
  /// To which threads beside the caller's add the processor time that they
  /// take. Null: to nothing.
  std::atomic<int64_t>* helper_nanoseconds = nullptr;
  /// What is found is no dearer than this, if this keeps to the limits; it must
  /// belong to the network. Of kGreedy and kOptimal without effect.
  std::optional<PathStart> start;
  /// Searching ends soon after this is set, with what there is. Null: never.
  const std::atomic<bool>* stop = nullptr;
};

struct Path {
  ContractionTree tree;
  std::vector<int32_t> sliced;  // indices, ascending
  TreeCost cost;
  PathMethod method = PathMethod::kAuto;  // that found it; never kAuto
  int64_t tried_count = 0;                // trees
};

/// Finds a tree with few flops, its steps in the order that has the least peak.
/// Deterministic for kGreedy and, where nothing is sliced, kOptimal; for others
/// when the time does not run out before their work is done.
///
/// Requires  options.method is neither kGiven nor kAnnealing.
/// Errors  INVALID_ARGUMENT, reason PATH_SEARCH_TOO_LARGE: kOptimal on more
///         inputs than it takes. RESOURCE_EXHAUSTED, reason
///         PATH_MEMORY_LIMIT: no slicing keeps to the limits; the least peak
///         that was found is named.
absl::StatusOr<Path> FindPath(const Network& network,
                              const PathOptions& options);

/// Of an error PATH_MEMORY_LIMIT: the least peak that was found, in elements.
double LeastPeakOf(const absl::Status& status);

/// As FindPath(), with a tree that is given: slices it to keep to max_peak.
absl::StatusOr<Path> SlicePath(const Network& network, ContractionTree tree,
                               double max_peak);

/// The tree that contracts, index by index in `order`, the nodes that have it,
/// with all the indices that they share; then what is left, first nodes first.
/// Requires  `order` has indices of `network`, each at most once.
ContractionTree TreeFromIndexOrder(const Network& network,
                                   absl::Span<const int32_t> order);

/// The tree of a path as opt_einsum and NumPy write it: every step takes the
/// nodes at those positions out of the list and puts its result at the end.
/// Steps of one node or of three and more are allowed, as NumPy does.
///
/// Errors  INVALID_ARGUMENT, reason PATH_MALFORMED.
absl::StatusOr<ContractionTree> TreeFromPositions(
    int input_count, absl::Span<const std::vector<int64_t>> path);

}  // namespace tensord::core
