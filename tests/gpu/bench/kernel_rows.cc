#include "tests/gpu/bench/kernel_rows.h"

#include <chrono>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/executor/executor.h"
#include "core/plan/planner.h"

namespace tensord::test {
namespace {

absl::Status PrintCandidate(BenchDevice& device, const BenchProblem& problem,
                            const core::Candidate& candidate,
                            const core::Candidate& reference,
                            absl::string_view chosen) {
  Row row = problem.row;
  row.emplace_back("kernel", candidate.name);
  if (!candidate.refusal.ok()) {
    row.emplace_back("refused", core::ReasonOf(candidate.refusal));
    Print(row);
    return absl::OkStatus();
  }
  const bool is_reference = candidate.name == reference.name;
  const core::Plan plan = core::PlanOf(candidate);
  TENSORD_ASSIGN_OR_RETURN(const core::Buffer scratch,
                           device.Allocate(plan.workspace_bytes()));
  TENSORD_RETURN_IF_ERROR(
      CheckCuda(cudaMemsetAsync(problem.d->data(), kPoison,
                                static_cast<size_t>(problem.d_bytes),
                                device.cuda_stream()),
                "cudaMemsetAsync"));
  TENSORD_ASSIGN_OR_RETURN(const Timing timing, device.Time(problem.bytes, [&] {
    return core::Execute(plan, problem.operands, scratch, device.stream());
  }));
  int64_t differences = 0;
  if (is_reference) {
    TENSORD_RETURN_IF_ERROR(CheckCuda(
        cudaMemcpyAsync(problem.expected->data(), problem.d->data(),
                        static_cast<size_t>(problem.d_bytes),
                        cudaMemcpyDeviceToDevice, device.cuda_stream()),
        "cudaMemcpyAsync"));
  } else {
    TENSORD_ASSIGN_OR_RETURN(
        differences,
        device.Differences(*problem.d, *problem.expected, problem.d_bytes));
  }
  row.insert(row.end(), {{"ns", timing.median_ns},
                         {"least_ns", timing.least_ns},
                         {"most_ns", timing.most_ns},
                         {"predicted_ns", plan.predicted_nanoseconds()},
                         {"chosen", candidate.name == chosen},
                         {"differing_bytes", differences}});
  Print(row);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Planning> TimePlanning(BenchDevice& device,
                                      const core::PlanKey& key) {
  std::vector<double> durations_ns;
  Planning planning;
  for (int i = 0; i < device.effort().repetitions(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto plan = core::MakePlan(device.backend(), key);
    durations_ns.push_back(std::chrono::duration<double, std::nano>(
                               std::chrono::steady_clock::now() - start)
                               .count());
    if (!plan.ok()) return plan.status();
    planning.kernel = std::string(plan->kernel_name());
  }
  planning.nanoseconds = TimingOf(durations_ns).median_ns;
  return planning;
}

absl::Status PrintKernelRows(BenchDevice& device, const BenchProblem& problem) {
  const core::PlanKey key{.problem = problem.problem,
                          .device = device.backend().info().name};
  TENSORD_ASSIGN_OR_RETURN(const Planning planning, TimePlanning(device, key));
  const std::vector<core::Candidate> candidates =
      core::ListCandidates(device.backend(), key);
  // The reference kernel is the last of its list. It runs first, as others are
  // compared with it, unless the result is known.
  const core::Candidate& reference = candidates.back();
  if (!problem.is_expected) {
    TENSORD_RETURN_IF_ERROR(
        PrintCandidate(device, problem, reference, reference, planning.kernel));
  }
  for (const core::Candidate& candidate : candidates) {
    if (&candidate == &reference) continue;
    TENSORD_RETURN_IF_ERROR(
        PrintCandidate(device, problem, candidate, reference, planning.kernel));
  }
  Row row = problem.row;
  row.emplace_back("planning_ns", planning.nanoseconds);
  Print(row);
  return absl::OkStatus();
}

}  // namespace tensord::test
