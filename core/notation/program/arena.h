// Where temporaries lie.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/notation/program/program.h"

namespace tensord::core {

/// Every tensor begins at a multiple of this.
inline constexpr int64_t kArenaAlignment = 256;

/// The bytes of `tensor` in the arena, rounded up to kArenaAlignment.
///
/// Requires  its layout is packed.
/// Errors    RESOURCE_EXHAUSTED, reason ARENA_TOO_LARGE: beyond int64.
absl::StatusOr<int64_t> ArenaBytesOf(const ProgramTensor& tensor);

/// Gives every temporary and constant of `program` a place in the arena, which
/// it shares with those that are alive at other times, and sets arena_bytes.
///
/// A temporary is alive from the first step that writes it to the last that
/// uses it; constants from the beginning. What a sliced block uses from before,
/// or writes for after, is alive in all its steps. Tensors that no step uses
/// get no place. When all of them fit `ample_bytes`, none shares memory, so
/// that steps that do not need each other may be carried out beside each other.
///
/// Errors  RESOURCE_EXHAUSTED, reason ARENA_TOO_LARGE: beyond int64.
absl::Status AssignArena(Program& program, int64_t ample_bytes);

}  // namespace tensord::core
