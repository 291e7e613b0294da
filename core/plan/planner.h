// Decides which kernel solves a problem.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/backend/backend.h"
#include "core/plan/plan.h"

namespace tensord::core {

/// Calls `visit(i, kernels)` for the list of each operation; `i` is the place
/// of its problem in AnyProblem.
template <typename Visit>
void VisitKernels(const KernelLists& lists, const Visit& visit) {
  [&]<size_t... i>(std::index_sequence<i...>) {
    (visit(i, KernelsFor(lists, std::variant_alternative_t<i, AnyProblem>())),
     ...);
  }
  (std::make_index_sequence<std::variant_size_v<AnyProblem>>());
}

/// What one kernel says to a problem.
struct Candidate {
  AnyKernel kernel;
  absl::string_view name;
  absl::Status refusal;  // OK when it could run
  /// Also of one that needs too much workspace; else null when it declines.
  std::shared_ptr<const AnySolution> solution;
};

/// The plan to run `candidate`, which could.
Plan PlanOf(const Candidate& candidate);

/// Every kernel of the problem's operation, in the backend's order. A kernel
/// also declines when the key names another one or when it needs more workspace
/// than the key allows.
std::vector<Candidate> ListCandidates(const Backend& backend,
                                      const PlanKey& key);

/// What the kernel of that name says, as in ListCandidates(); nothing when
/// there is none.
std::optional<Candidate> FindCandidate(const Backend& backend,
                                       const PlanKey& key,
                                       absl::string_view kernel);

/// A plan for each candidate that could run, in the backend's order. None when
/// there is nothing to do.
std::vector<Plan> ListPlans(const Backend& backend, const PlanKey& key);

/// The plan with the least predicted time; of equals, the first in the list.
///
/// Errors  NOT_FOUND: the key names a kernel that the backend does not have.
///         RESOURCE_EXHAUSTED: every kernel that could run needs more workspace
///         than allowed; names the smallest need. UNIMPLEMENTED: none could
///         run, with the reason of each.
absl::StatusOr<Plan> MakePlan(const Backend& backend, const PlanKey& key);

}  // namespace tensord::core
