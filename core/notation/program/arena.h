// Where temporaries lie.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "core/notation/program/program.h"

namespace tensord::core {

/// Gives every temporary and constant of `program` a place in the arena, which
/// it shares with those that are alive at other times, and sets arena_bytes.
///
/// A temporary is alive from the first step that writes it to the last that
/// uses it; constants from the beginning. What a sliced block uses from before,
/// or writes for after, is alive in all its steps. Tensors that no step uses
/// get no place.
///
/// Errors  RESOURCE_EXHAUSTED, reason ARENA_TOO_LARGE: beyond int64.
absl::Status AssignArena(Program& program);

}  // namespace tensord::core
