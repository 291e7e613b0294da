// Steps of a program -> work on a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/executor/executor.h"
#include "core/notation/program/lanes.h"
#include "core/plan/plan.h"
#include "server/execution/program/prepared_program.h"
#include "server/execution/step_runner.h"

namespace tensord::server {

/// A program with all that its steps need in place.
///
/// Lifetime  of all that it refers to: longer than the work that is queued.
struct PlacedProgram {
  const PreparedProgram& prepared;
  /// Of the first element; null where nothing is there (tensor).
  absl::Span<std::byte* const> addresses;
  StepRunner& runner;                // has the plans of prepared.keys()
  absl::Span<int64_t> kept_extents;  // of Program::kept_extents; written

  const core::Program& program() const { return prepared.program(); }
  const core::Plan& plan_of(size_t block, size_t step) const {
    return *runner.plans()[prepared.key_of(block, step)];
  }
};

/// A step in one of the slices of a block.
struct StepPosition {
  size_t block = 0;
  core::ModeVector slice;  // of the block; empty: the first one
  size_t step = 0;

  /// Goes on to what comes next: a step, a slice, a block.
  void Advance(const core::Program& program);
};

/// Queues one step. Errors  as core::Execute().
absl::Status QueueStep(const PlacedProgram& placed,
                       const StepPosition& position, core::Stream& stream);

/// How the steps of a block are spread over `stream_count` streams; empty
/// unless it is carried out once.
std::vector<core::LaneStep> LanesOf(const PlacedProgram& placed, size_t block,
                                    int32_t stream_count);

/// Queues the steps of `block`, in all slices: beside each other as `lanes` has
/// it, or one after the other when that is empty. What is queued on `stream`
/// afterwards comes behind them, also when an error is returned.
/// Errors  as core::Execute().
absl::Status QueueBlock(const PlacedProgram& placed, size_t block,
                        absl::Span<const core::LaneStep> lanes,
                        core::Stream& stream);

}  // namespace tensord::server
