#include "core/executor/copy_bandwidth.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/executor/executor.h"
#include "core/plan/planner.h"

namespace tensord::core {
namespace {

// Spans of as many copies as make launching them and waiting for their end
// small.
constexpr int kSpans = 3;
constexpr absl::Duration kLeastSpan = absl::Milliseconds(2);
constexpr int kMostCopies = 50;

PermutationDesc CopyOf(int64_t bytes) {
  const OperandDesc operand{.element_type = ElementType::kUint8,
                            .layout = {.extents = {bytes}, .strides = {1}},
                            .modes = {0}};
  return {.a = operand,
          .d = operand,
          .compute_type = ComputeType::kInteger,
          .alpha_is_one = true};
}

/// Time from here to the end of `copies` copies.
absl::StatusOr<absl::Duration> TimeOf(int copies, const Plan& plan,
                                      const PermutationOperands& operands,
                                      const Buffer& scratch, Stream& stream) {
  const absl::Time start = absl::Now();
  absl::Status status;
  for (int copy = 0; copy < copies && status.ok(); ++copy) {
    status = Execute(plan, operands, scratch, stream);
  }
  // Also after a failure: a part may have been queued, and uses the buffers.
  status.Update(stream.Synchronize());
  TENSORD_RETURN_IF_ERROR(status);
  return absl::Now() - start;
}

}  // namespace

absl::StatusOr<double> MeasureCopyBandwidth(Backend& backend, int64_t bytes,
                                            Stream& stream) {
  TENSORD_ASSIGN_OR_RETURN(
      const Plan plan,
      MakePlan(backend, {.problem = Canonicalize(CopyOf(bytes)),
                         .device = backend.info().name}));
  TENSORD_ASSIGN_OR_RETURN(const Buffer a,
                           Buffer::Allocate(backend.memory(), bytes));
  TENSORD_ASSIGN_OR_RETURN(const Buffer d,
                           Buffer::Allocate(backend.memory(), bytes));
  TENSORD_ASSIGN_OR_RETURN(
      const Buffer scratch,
      Buffer::Allocate(backend.memory(), plan.workspace_bytes()));
  // Pages of the host's that nobody has written are one and the same.
  TENSORD_RETURN_IF_ERROR(
      TimeOf(1, plan, {.a = d.data(), .d = a.data()}, scratch, stream)
          .status());
  const PermutationOperands operands{.a = a.data(), .d = d.data()};
  TENSORD_ASSIGN_OR_RETURN(const absl::Duration once,
                           TimeOf(1, plan, operands, scratch, stream));
  const int copies = static_cast<int>(
      std::clamp<double>(absl::FDivDuration(kLeastSpan, once), 1, kMostCopies));
  absl::Duration least = absl::InfiniteDuration();
  for (int span = 0; span < kSpans; ++span) {
    TENSORD_ASSIGN_OR_RETURN(const absl::Duration all,
                             TimeOf(copies, plan, operands, scratch, stream));
    least = std::min(least, all / copies);
  }
  return 2.0 * static_cast<double>(bytes) /
         std::max(absl::ToDoubleNanoseconds(least), 1.0);
}

}  // namespace tensord::core
