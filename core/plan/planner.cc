#include "core/plan/planner.h"

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

constexpr absl::string_view kWorkspaceReason = "WORKSPACE_LIMIT";
constexpr absl::string_view kOtherKernelReason = "OTHER_KERNEL_NAMED";

template <typename Kernel, typename Problem>
Candidate Ask(const Kernel& kernel, const Problem& problem,
              const PlanKey& key) {
  Candidate candidate{.kernel = &kernel,
                      .name = kernel.name(),
                      .refusal = {},
                      .solution = nullptr};
  if (!key.kernel.empty() && key.kernel != kernel.name()) {
    candidate.refusal =
        Unimplemented(kOtherKernelReason, key.kernel, " was asked for");
    return candidate;
  }
  auto solution = kernel.Solve(problem);
  candidate.refusal = solution.status();
  if (!solution.ok()) return candidate;
  candidate.solution = *std::move(solution);
  const int64_t bytes = candidate.solution->workspace_bytes();
  if (bytes > key.workspace_limit_bytes) {
    candidate.refusal = ResourceExhausted(kWorkspaceReason, "needs ", bytes,
                                          " bytes of workspace, allowed are ",
                                          key.workspace_limit_bytes);
  }
  return candidate;
}

absl::Status NoneFits(const Backend& backend, const PlanKey& key,
                      const std::vector<Candidate>& candidates) {
  bool named = key.kernel.empty();
  int64_t least = kNoWorkspaceLimit;
  std::string reasons;
  for (const Candidate& candidate : candidates) {
    named = named || candidate.name == key.kernel;
    const std::string reason = ReasonOf(candidate.refusal);
    if (reason == kWorkspaceReason) {
      least = std::min(least, candidate.solution->workspace_bytes());
    }
    if (reason != kOtherKernelReason) {
      absl::StrAppend(&reasons, reasons.empty() ? "" : "; ", candidate.name,
                      ": ", candidate.refusal.message());
    }
  }
  if (candidates.empty()) {
    return Unimplemented("NO_KERNEL", backend.info().name,
                         " has no kernels for the operation; use a session on "
                         "another device");
  }
  if (!named) {
    std::string names;
    for (const Candidate& candidate : candidates) {
      absl::StrAppend(&names, names.empty() ? "" : ", ", candidate.name);
    }
    return NotFound("KERNEL_NOT_FOUND", "kernel '", key.kernel,
                    "' does not exist on ", backend.info().name, ", there are ",
                    names);
  }
  if (least != kNoWorkspaceLimit) {
    return ResourceExhausted(
        kWorkspaceReason, "workspace limit is ", key.workspace_limit_bytes,
        " bytes, the kernel that needs least needs ", least);
  }
  return Unimplemented("NO_KERNEL",
                       "no kernel supports the problem: ", reasons);
}

}  // namespace

Plan PlanOf(const Candidate& candidate) {
  return {.kernel = candidate.kernel, .solution = candidate.solution};
}

std::vector<Candidate> ListCandidates(const Backend& backend,
                                      const PlanKey& key) {
  std::vector<Candidate> candidates;
  std::visit(
      [&](const auto& problem) {
        for (const auto& kernel : KernelsFor(backend.kernels(), problem)) {
          candidates.push_back(Ask(*kernel, problem, key));
        }
      },
      key.problem);
  return candidates;
}

std::optional<Candidate> FindCandidate(const Backend& backend,
                                       const PlanKey& key,
                                       absl::string_view kernel) {
  std::optional<Candidate> found;
  std::visit(
      [&](const auto& problem) {
        for (const auto& other : KernelsFor(backend.kernels(), problem)) {
          if (!found && other->name() == kernel) {
            found = Ask(*other, problem, key);
          }
        }
      },
      key.problem);
  return found;
}

std::vector<Plan> ListPlans(const Backend& backend, const PlanKey& key) {
  std::vector<Plan> plans;
  if (IsEmpty(key.problem)) return plans;
  for (const Candidate& candidate : ListCandidates(backend, key)) {
    if (candidate.refusal.ok()) plans.push_back(PlanOf(candidate));
  }
  return plans;
}

absl::StatusOr<Plan> MakePlan(const Backend& backend, const PlanKey& key) {
  if (IsEmpty(key.problem)) return Plan{};
  const std::vector<Candidate> candidates = ListCandidates(backend, key);
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.refusal.ok() &&
        (best == nullptr || candidate.solution->predicted_nanoseconds() <
                                best->solution->predicted_nanoseconds())) {
      best = &candidate;
    }
  }
  if (best == nullptr) return NoneFits(backend, key, candidates);
  return PlanOf(*best);
}

}  // namespace tensord::core
