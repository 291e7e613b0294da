// Runs all blocks of a launch.
#pragma once

#include <optional>

#include "tests/simt/grid/block_runner.h"

namespace tensord::simt {

/// Runs the blocks in the order of the schedule, on as many OS threads as it
/// says, and returns when all have ended or one broke a rule.
///
/// Threads  safe for concurrent use.
std::optional<Violation> RunGrid(const GridLaunch& launch);

}  // namespace tensord::simt
