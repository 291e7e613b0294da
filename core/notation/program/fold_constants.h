// What a program computes of constant operands alone, apart from the rest.
#pragma once

#include "absl/status/status.h"
#include "core/notation/program/program.h"

namespace tensord::core {

/// Moves the steps that depend on constant operands alone into a first block,
/// which is marked as folded. Temporaries of theirs that other steps read are
/// kept: they get a place in memory that outlives an execution, of kept_bytes.
///
/// Such a step is in no sliced block, reads constant operands and temporaries
/// of such steps, and writes a temporary that only such steps write, and that
/// others read only after the last of these.
///
/// Requires  no step writes a constant operand.
/// Errors    RESOURCE_EXHAUSTED, reason ARENA_TOO_LARGE: beyond int64.
absl::Status FoldConstants(Program& program);

/// True when the folded blocks of both compute the same from the same operands:
/// what one has kept is what the other would.
bool FoldAlike(const Program& x, const Program& y);

}  // namespace tensord::core
