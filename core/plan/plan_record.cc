#include "core/plan/plan_record.h"

#include <cmath>
#include <optional>

#include "core/base/status.h"
#include "core/plan/byte_codec.h"
#include "core/plan/plan_key_codec.h"
#include "core/plan/planner.h"

namespace tensord::core {
namespace {

// version | key | kernel | its version | selection | predicted | measured |
// planning | count of times { kernel | version | count of samples { sample } }
constexpr uint8_t kRecordVersion = 1;
constexpr uint64_t kMaxKeyBytes = 32 << 10;
constexpr uint64_t kMaxTimes = 64;
constexpr uint64_t kMaxSamples = 16;
constexpr uint64_t kMaxVersion = INT32_MAX;
// Beyond a day it is no measurement; sums and products of it stay numbers.
constexpr double kMaxNanoseconds = 86'400e9;

absl::Status Malformed(absl::string_view what) {
  return InvalidArgument("PLAN_RECORD_MALFORMED",
                         "malformed plan record: ", what);
}

/// Predictions may be larger, but are numbers, too.
double ReadNanoseconds(ByteReader& from, double most) {
  const double value = from.Double();
  if (!std::isfinite(value) || std::signbit(value) || value > most) from.Fail();
  return from.ok() ? value : 0;
}

absl::Status Differs(absl::string_view what, absl::string_view kept,
                     absl::string_view asked) {
  return FailedPrecondition("PLAN_KEY_DIFFERS", "the plan kept is for ", what,
                            " '", kept, "', asked for was '", asked, "'");
}

/// Says the first field in which the keys differ.
absl::Status CheckKey(const PlanRecord& record, const PlanKey& asked) {
  if (record.key == EncodedPlanKey(asked).bytes()) return absl::OkStatus();
  const absl::StatusOr<PlanKey> kept = DecodePlanKey(record.key);
  if (!kept.ok()) {
    return FailedPrecondition(
        "PLAN_KEY_DIFFERS",
        "the plan kept has no key that can be read: ", kept.status().message());
  }
  if (kept->device != asked.device) {
    return Differs("device", kept->device, asked.device);
  }
  if (kept->kernel != asked.kernel) {
    return Differs("kernel", kept->kernel, asked.kernel);
  }
  if (kept->problem != asked.problem) {
    return FailedPrecondition("PLAN_KEY_DIFFERS",
                              "the plan kept is for another problem");
  }
  return FailedPrecondition(
      "PLAN_KEY_DIFFERS",
      "the plan kept is for another workspace limit, determinism or selection");
}

absl::Status CheckSelection(const PlanRecord& record, const PlanKey& asked) {
  const bool is_asked = record.selection == Selection::kHeuristic ||
                        record.selection == asked.selection;
  if (is_asked &&
      (record.selection == Selection::kHeuristic || !asked.deterministic)) {
    return absl::OkStatus();
  }
  return FailedPrecondition(
      "PLAN_SELECTION_DIFFERS",
      "the plan kept was taken by measurement, which was not asked for");
}

}  // namespace

std::string EncodePlanRecord(const PlanRecord& record) {
  size_t bound = 64 + record.key.size() + record.kernel.size();
  for (const KernelTimes& times : record.times) {
    bound += 32 + times.kernel.size() + 8 * times.nanoseconds.size();
  }
  std::string bytes(bound, '\0');
  ByteWriter to(bytes.data());
  to.Byte(kRecordVersion);
  to.Text(record.key);
  to.Text(record.kernel);
  to.Varint(static_cast<uint64_t>(record.kernel_version));
  to.Byte(record.selection);
  to.Double(record.predicted_nanoseconds);
  to.Double(record.measured_nanoseconds);
  to.Varint(static_cast<uint64_t>(record.planning_nanoseconds));
  to.Varint(record.times.size());
  for (const KernelTimes& times : record.times) {
    to.Text(times.kernel);
    to.Varint(static_cast<uint64_t>(times.version));
    to.Varint(times.nanoseconds.size());
    for (const double sample : times.nanoseconds) to.Double(sample);
  }
  bytes.resize(static_cast<size_t>(to.end() - bytes.data()));
  return bytes;
}

absl::StatusOr<PlanRecord> DecodePlanRecord(absl::string_view bytes) {
  if (bytes.size() > kMaxRecordBytes) return Malformed("it is too long");
  ByteReader from(bytes);
  if (from.Byte() != kRecordVersion) return Malformed("its version is unknown");
  PlanRecord record;
  record.key = std::string(from.Text(kMaxKeyBytes));
  record.kernel = std::string(from.Text(kMaxKeyNameBytes));
  record.kernel_version = static_cast<int>(from.Varint(kMaxVersion));
  record.selection = from.Enumerator<Selection>(kSelectionCount);
  record.predicted_nanoseconds = ReadNanoseconds(from, 1e300);
  record.measured_nanoseconds = ReadNanoseconds(from, kMaxNanoseconds);
  record.planning_nanoseconds =
      static_cast<int64_t>(from.Varint(static_cast<uint64_t>(kMaxNanoseconds)));
  const uint64_t count = from.Varint(kMaxTimes);
  for (uint64_t i = 0; i < count && from.ok(); ++i) {
    KernelTimes& times = record.times.emplace_back();
    times.kernel = std::string(from.Text(kMaxKeyNameBytes));
    times.version = static_cast<int>(from.Varint(kMaxVersion));
    const uint64_t samples = from.Varint(kMaxSamples);
    for (uint64_t j = 0; j < samples && from.ok(); ++j) {
      times.nanoseconds.push_back(ReadNanoseconds(from, kMaxNanoseconds));
    }
  }
  if (!from.AtEnd()) return Malformed("it is cut off or out of range");
  TENSORD_RETURN_IF_ERROR(DecodePlanKey(record.key).status());
  return record;
}

absl::string_view KeyOfRecord(absl::string_view bytes) {
  ByteReader from(bytes);
  if (from.Byte() != kRecordVersion) return {};
  return from.Text(kMaxKeyBytes);
}

bool IsSettled(const PlanRecord& record) {
  const absl::StatusOr<PlanKey> key = DecodePlanKey(record.key);
  return key.ok() && (key->deterministic || record.kernel.empty() ||
                      record.selection == key->selection);
}

absl::StatusOr<Plan> Resolve(const Backend& backend, const PlanRecord& record,
                             const PlanKey& asked) {
  TENSORD_RETURN_IF_ERROR(CheckKey(record, asked));
  TENSORD_RETURN_IF_ERROR(CheckSelection(record, asked));
  if (IsEmpty(asked.problem) != record.kernel.empty()) {
    return FailedPrecondition("PLAN_KERNEL_DIFFERS", "the plan kept has ",
                              record.kernel.empty() ? "no kernel" : "a kernel",
                              ", wanted ",
                              record.kernel.empty() ? "one" : "none");
  }
  if (record.kernel.empty()) {
    return Plan{.selection = record.selection};
  }
  if (!asked.kernel.empty() && asked.kernel != record.kernel) {
    return FailedPrecondition("PLAN_KERNEL_DIFFERS",
                              "the plan kept has kernel ", record.kernel,
                              ", asked for was ", asked.kernel);
  }
  const std::optional<Candidate> kernel =
      FindCandidate(backend, asked, record.kernel);
  if (!kernel) {
    return FailedPrecondition("PLAN_KERNEL_MISSING",
                              "the plan kept has kernel ", record.kernel,
                              ", which does not exist on ", asked.device);
  }
  Plan plan = PlanOf(*kernel);
  plan.selection = record.selection;
  plan.measured_nanoseconds = record.measured_nanoseconds;
  if (plan.kernel_version() != record.kernel_version) {
    return FailedPrecondition("PLAN_KERNEL_CHANGED", "the plan kept is for ",
                              record.kernel, " in version ",
                              record.kernel_version, ", it is now in version ",
                              plan.kernel_version());
  }
  if (!kernel->refusal.ok()) {
    return FailedPrecondition(
        "PLAN_NOT_SUPPORTED", record.kernel,
        " of the plan kept declines: ", kernel->refusal.message());
  }
  if (asked.deterministic) {
    TENSORD_ASSIGN_OR_RETURN(const Plan made, MakePlan(backend, asked));
    if (made.kernel != plan.kernel) {
      return FailedPrecondition(
          "PLAN_KERNEL_DIFFERS", "the plan kept has kernel ", record.kernel,
          ", planning takes ", made.kernel_name(), " when runs must equal");
    }
  }
  return plan;
}

}  // namespace tensord::core
