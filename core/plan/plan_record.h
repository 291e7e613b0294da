// What is known of a plan beyond the process that made it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/backend/backend.h"
#include "core/plan/plan.h"
#include "core/plan/tuning.h"

namespace tensord::core {

/// Most bytes of an encoded record that is read.
inline constexpr size_t kMaxRecordBytes = 64 << 10;

struct PlanRecord {
  std::string key;           // in full, EncodePlanKey()'s
  std::string kernel;        // empty: there is nothing to do
  int kernel_version = 0;    // Kernel::version() of then
  Selection selection = {};  // that took the kernel
  double predicted_nanoseconds = 0;
  double measured_nanoseconds = 0;   // 0: it was not measured
  int64_t planning_nanoseconds = 0;  // that making the plan took
  std::vector<KernelTimes> times;    // of what was tried so far

  bool operator==(const PlanRecord&) const = default;
};

std::string EncodePlanRecord(const PlanRecord& record);

/// The record that EncodePlanRecord() made `bytes` of. What it gives encodes to
/// the same bytes again, and its key decodes.
///
/// Errors  INVALID_ARGUMENT, reasons PLAN_RECORD_MALFORMED and
///         PLAN_KEY_MALFORMED: anything else.
absl::StatusOr<PlanRecord> DecodePlanRecord(absl::string_view bytes);

/// The encoded key in an encoded record, unread; "" when there is none.
absl::string_view KeyOfRecord(absl::string_view bytes);

/// Whether a record has a choice made in the way that its key asks for. Until
/// that is so, kernels are still to be timed.
bool IsSettled(const PlanRecord& record);

/// The plan of `asked` by what `record` says, as far as it holds here and now:
/// the workspace and the prediction are the kernel's own of today. Whatever the
/// record says, the plan is one that planning on `backend` could have given;
/// where it must be deterministic, the one that it gives.
///
/// Errors  FAILED_PRECONDITION, says what differs. Reasons PLAN_KEY_DIFFERS;
///         PLAN_KERNEL_DIFFERS: from the one that the key names, or that is
///         taken when runs must equal; PLAN_KERNEL_MISSING;
///         PLAN_KERNEL_CHANGED: its version; PLAN_SELECTION_DIFFERS: it was
///         taken in a way that was not asked for; PLAN_NOT_SUPPORTED: the
///         kernel declines, or needs more workspace than the key allows.
absl::StatusOr<Plan> Resolve(const Backend& backend, const PlanRecord& record,
                             const PlanKey& asked);

}  // namespace tensord::core
