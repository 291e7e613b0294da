// What is printed of an operation on .npy files.
#include <algorithm>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/file_tensors.h"
#include "client/cli/text.h"

namespace tensord::cli {

int PrintExplanation(const absl::StatusOr<Explanation>& explained) {
  if (!explained.ok()) return Fail(explained.status());
  const Explanation& e = *explained;
  absl::PrintF("problem    %s\n", e.problem);
  const bool refused =
      std::any_of(e.candidates.begin(), e.candidates.end(),
                  [](const KernelCandidate& c) { return !c.refusal.empty(); });
  const char* no_kernel =
      refused ? "none, all decline" : "none, there is nothing to compute";
  absl::PrintF("kernel     %s\n", e.kernel.empty() ? no_kernel : e.kernel);
  absl::PrintF("work       %.4g flops, %s moved\n", e.flops,
               BytesText(e.moved_bytes));
  absl::PrintF("workspace  %s\n", BytesText(e.workspace_bytes));
  absl::PrintF("plan       %s\n", e.plan_cache_hit ? "cached" : "new");
  absl::PrintF("candidates\n");
  for (const KernelCandidate& candidate : e.candidates) {
    if (candidate.refusal.empty()) {
      absl::PrintF(
          "  %-32s %s predicted, %s workspace: %s\n", candidate.kernel,
          DurationText(absl::Nanoseconds(candidate.predicted_nanoseconds)),
          BytesText(candidate.workspace_bytes), candidate.decision);
    } else {
      absl::PrintF("  %-32s declines: %s\n", candidate.kernel,
                   candidate.refusal);
    }
  }
  return kOk;
}

int Finish(const std::vector<Fetched>& all, absl::Duration uploading) {
  const absl::StatusOr<absl::Duration> writing = FetchAll(all);
  if (!writing.ok()) return Fail(writing.status());
  const ExecutionReport& report = all.front().tensor->report();
  absl::PrintF("kernel    %s, plan %s, %s workspace",
               report.kernel.empty() ? "none" : report.kernel,
               report.plan_cache_hit ? "cached" : "new",
               BytesText(report.workspace_bytes));
  if (report.gathered_bytes > 0) {
    absl::PrintF(", %s of views gathered", BytesText(report.gathered_bytes));
  }
  if (report.kept_extent > 0) {
    absl::PrintF(", %d values kept, zeros beyond", report.kept_extent);
  }
  absl::PrintF("\n");
  absl::PrintF("times     upload %s, queued %s, executed %s",
               DurationText(uploading), DurationText(report.queued),
               DurationText(report.executed));
  if (*writing > absl::ZeroDuration()) {
    absl::PrintF(", download %s", DurationText(*writing));
  }
  absl::PrintF("\n");
  return kOk;
}

}  // namespace tensord::cli
