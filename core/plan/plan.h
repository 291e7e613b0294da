// What was decided: which kernel solves a problem, and with how much memory.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/string_view.h"
#include "core/backend/kernel.h"

namespace tensord::core {

using AnyProblem =
    std::variant<PermutationProblem, ElementwiseProblem, ReductionProblem,
                 ContractionProblem, FactorizationProblem, LinearSolveProblem>;
using AnyKernel =
    std::variant<const PermutationKernel*, const ElementwiseKernel*,
                 const ReductionKernel*, const ContractionKernel*,
                 const FactorizationKernel*, const LinearSolveKernel*>;

inline constexpr int64_t kNoWorkspaceLimit =
    std::numeric_limits<int64_t>::max();

/// How the kernel is chosen.
enum class Selection {
  kHeuristic,  // by the kernels' cost models
  kMeasure,    // by running those that could
  /// By running one more that could at each of the next executions.
  kIncremental,
};
inline constexpr int kSelectionCount = 3;

/// All that a decision depends on. Labels, addresses and factors are not in it,
/// except for what problems know of alignment, and permutations of alpha.
struct PlanKey {
  AnyProblem problem;
  /// DeviceInfo::architecture and the device's name: costs differ by both.
  std::string device;
  int64_t workspace_limit_bytes = kNoWorkspaceLimit;
  /// Name of the kernel to use; empty lets the planner choose.
  std::string kernel;
  bool deterministic = false;
  Selection selection = Selection::kHeuristic;

  bool operator==(const PlanKey&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const PlanKey& key) {
    h = std::visit(
        [&](const auto& problem) { return H::combine(std::move(h), problem); },
        key.problem);
    return H::combine(std::move(h), key.problem.index(), key.device,
                      key.workspace_limit_bytes, key.kernel, key.deterministic,
                      key.selection);
  }
};

/// Threads   immutable; share freely.
/// Lifetime  the backend it was made on must outlive it.
struct Plan {
  /// Null when d has no elements: then there is nothing to do.
  AnyKernel kernel;
  /// What the kernel decided; null when the kernel is.
  std::shared_ptr<const AnySolution> solution;
  Selection selection = Selection::kHeuristic;  // that took the kernel
  double measured_nanoseconds = 0;              // 0: it was not measured

  int64_t workspace_bytes() const {
    return solution ? solution->workspace_bytes() : 0;
  }
  double predicted_nanoseconds() const {
    return solution ? solution->predicted_nanoseconds() : 0;
  }
  /// Name of the kernel; empty when there is nothing to do.
  absl::string_view kernel_name() const {
    return std::visit(
        [](const auto* k) { return k ? k->name() : absl::string_view(); },
        kernel);
  }
  /// Version of the kernel; 0 when there is nothing to do.
  int kernel_version() const {
    return std::visit([](const auto* k) { return k ? k->version() : 0; },
                      kernel);
  }
};

/// True when the output has no elements.
bool IsEmpty(const AnyProblem& problem);

}  // namespace tensord::core
