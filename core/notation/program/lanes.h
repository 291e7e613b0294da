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
  /// The steps of other lanes that have to end before, but for those that it
  /// follows from that they have.
  std::vector<int32_t> after;
  /// Whether steps of other lanes are behind this one.
  bool is_awaited = false;
};

/// Spreads a block over at most `most_lanes` lanes, so that steps of different
/// lanes that are not in order share no memory but what both only read.
///
/// A step continues the lane of one that it needs where it can, and else goes
/// to the lane that has least to do. Those that need the scratch memory, which
/// there is once, are all in lane 0.
///
/// Requires  AssignArena(program) before; `costs` and `needs_scratch` (step).
/// Lanes are numbered without gaps; lane 0 may be empty.
std::vector<LaneStep> AssignLanes(const Program& program,
                                  const ProgramBlock& block,
                                  absl::Span<const double> costs,
                                  const std::vector<bool>& needs_scratch,
                                  int32_t most_lanes);

}  // namespace tensord::core
