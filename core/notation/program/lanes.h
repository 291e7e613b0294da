// Which steps of a program may be carried out beside each other.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/notation/program/program.h"

namespace tensord::core {

/// When a step may begin.
struct LaneStep {
  /// Steps of a lane are carried out one after the other.
  int32_t lane = 0;
  /// Steps of other lanes to wait for, except those already implied.
  std::vector<int32_t> after;
  /// Whether steps of other lanes wait for this one.
  bool is_awaited = false;
};

/// Spreads a block over at most `most_lanes` lanes. Steps of different lanes of
/// which neither waits for the other share only memory that both just read.
///
/// A step continues the lane of a step that it needs where it can, else it goes
/// to the lane with the least to do. There is one scratch memory: all steps
/// that need it are in lane 0.
///
/// Requires  AssignArena(program) before; `costs` and `needs_scratch` (step).
/// Post      lanes are numbered without gaps; lane 0 may be empty.
std::vector<LaneStep> AssignLanes(const Program& program,
                                  const ProgramBlock& block,
                                  absl::Span<const double> costs,
                                  const std::vector<bool>& needs_scratch,
                                  int32_t most_lanes);

}  // namespace tensord::core
