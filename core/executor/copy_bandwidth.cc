#include "core/executor/copy_bandwidth.h"

#include <algorithm>

#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/executor/executor.h"
#include "core/executor/measure.h"
#include "core/plan/planner.h"

namespace tensord::core {
namespace {

PermutationDesc CopyOf(int64_t bytes) {
  const OperandDesc operand{.element_type = ElementType::kUint8,
                            .layout = {.extents = {bytes}, .strides = {1}},
                            .modes = {0}};
  return {.a = operand,
          .d = operand,
          .compute_type = ComputeType::kInteger,
          .alpha_is_one = true};
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
  absl::Status written = Execute(
      plan, PermutationOperands{.a = d.data(), .d = a.data()}, scratch, stream);
  written.Update(stream.Synchronize());
  TENSORD_RETURN_IF_ERROR(written);
  TENSORD_ASSIGN_OR_RETURN(
      const absl::Duration time,
      MeasureTime(plan, PermutationOperands{.a = a.data(), .d = d.data()},
                  scratch, stream, absl::Milliseconds(2)));
  return 2.0 * static_cast<double>(bytes) /
         std::max(absl::ToDoubleNanoseconds(time), 1.0);
}

}  // namespace tensord::core
