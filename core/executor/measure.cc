#include "core/executor/measure.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/plan/planner.h"
#include "core/plan/tuning.h"

namespace tensord::core {
namespace {

constexpr int kSpans = 3;
constexpr int kMostRuns = 50;
// Of each kernel.
constexpr absl::Duration kLeastSpan = absl::Microseconds(300);

/// Waits until all that was queued is done; others may go first meanwhile.
absl::Status Await(Stream& stream) {
  auto recorded = stream.Record();
  Interruption* const interruption = stream.interruption();
  if (recorded.ok() && *recorded != nullptr && interruption != nullptr) {
    interruption->Await(std::shared_ptr<Event>(*std::move(recorded)));
  }
  return stream.Synchronize();  // when stopped it may be under way
}

/// Time that `runs` runs of `plan` take together.
absl::StatusOr<absl::Duration> TimeOf(int runs, const Plan& plan,
                                      const AnyOperands& operands,
                                      const Buffer& scratch, Stream& stream) {
  TENSORD_ASSIGN_OR_RETURN(const auto begin, stream.RecordTime());
  absl::Status status;
  for (int run = 0; run < runs && status.ok(); ++run) {
    status = Execute(plan, operands, scratch, stream);
  }
  const auto end = stream.RecordTime();
  // Also after a failure: a part may have been queued, and uses the scratch.
  status.Update(Await(stream));
  TENSORD_RETURN_IF_ERROR(status);
  TENSORD_RETURN_IF_ERROR(end.status());
  TENSORD_ASSIGN_OR_RETURN(const double time, (*end)->NanosecondsSince(*begin));
  return absl::Nanoseconds(time);
}

}  // namespace

absl::StatusOr<absl::Duration> MeasureTime(const Plan& plan,
                                           const AnyOperands& operands,
                                           const Buffer& scratch,
                                           Stream& stream,
                                           absl::Duration least_span) {
  TENSORD_RETURN_IF_ERROR(TimeOf(1, plan, operands, scratch, stream).status());
  TENSORD_ASSIGN_OR_RETURN(absl::Duration least,
                           TimeOf(1, plan, operands, scratch, stream));
  const int runs = static_cast<int>(
      std::clamp<double>(absl::FDivDuration(least_span, least), 1, kMostRuns));
  for (int span = 0; span < kSpans; ++span) {
    TENSORD_ASSIGN_OR_RETURN(const absl::Duration all,
                             TimeOf(runs, plan, operands, scratch, stream));
    least = std::min(least, all / runs);
  }
  return least;
}

absl::StatusOr<MeasuredPlan> MeasurePlan(const Backend& backend,
                                         const PlanKey& key,
                                         const AnyOperands& operands,
                                         MemoryResource& memory,
                                         Stream& stream) {
  TENSORD_ASSIGN_OR_RETURN(Plan predicted, MakePlan(backend, key));
  if (predicted.kernel_name().empty()) {
    predicted.selection = Selection::kMeasure;
    return MeasuredPlan{std::move(predicted)};
  }
  std::vector<Plan> measured;
  std::vector<KernelTime> times;
  absl::Status no_workspace;  // of any kernel
  for (const Candidate& candidate : ListCandidates(backend, key)) {
    if (!candidate.refusal.ok() ||
        candidate.solution->predicted_nanoseconds() >
            kHopelessFactor * predicted.predicted_nanoseconds()) {
      continue;
    }
    Plan plan = PlanOf(candidate);
    plan.selection = Selection::kMeasure;
    const absl::StatusOr<Buffer> scratch =
        Buffer::Allocate(memory, plan.workspace_bytes());
    if (!scratch.ok()) {
      no_workspace = scratch.status();
      continue;
    }
    TENSORD_ASSIGN_OR_RETURN(
        const absl::Duration time,
        MeasureTime(plan, operands, *scratch, stream, kLeastSpan));
    plan.measured_nanoseconds = absl::ToDoubleNanoseconds(time);
    times.push_back({plan.predicted_nanoseconds(), plan.measured_nanoseconds});
    measured.push_back(std::move(plan));
  }
  const std::optional<size_t> choice = ChooseMeasured(times);
  if (!choice) return no_workspace;
  return MeasuredPlan{std::move(measured[*choice]), no_workspace.ok()};
}

}  // namespace tensord::core
