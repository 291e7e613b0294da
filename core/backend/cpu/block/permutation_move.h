// Permutation of elements as bits.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/problem/permutation_problem.h"

namespace tensord::core {

/// How to move the elements of a permutation, in blocks of pieces.
///
/// A block has long runs of a and of d, so that both are read and written in
/// few places at a time, and stays in the second-level cache. A piece is what
/// is moved at once: rows that a and d both hold contiguously, or a tile whose
/// rows are contiguous in a and whose columns are contiguous in d.
struct MovePlan {
  /// A loop over the pieces of a block.
  struct PieceLoop {
    size_t block_loop;  // the loop of `blocks` that it cuts further
    int64_t step;
  };

  bool transposes = false;
  int64_t element_bytes = 0;
  /// Units  strides and offsets are in bytes.
  TileSpace<2> blocks;
  absl::InlinedVector<PieceLoop, 8> pieces;  // innermost first
  // Which of `pieces` run over the rows and over the columns of a piece. Rows
  // that are copied have their bytes as columns.
  size_t row_loop = 0, column_loop = 0;
  /// Every row of d starts at a cache line when d does.
  bool is_aligned = false;
  int64_t d_bytes = 0;
};

/// Nothing when there are no contiguous rows: the first mode has a stride other
/// than 1 in d, or no mode has a stride of 1 in a.
std::optional<MovePlan> PlanMove(LoopModes<2> modes, int64_t element_bytes);

/// Runs the plan.
/// Aliasing  a and d do not overlap.
void Move(const MovePlan& plan, const void* a, void* d, ThreadPool& threads);

}  // namespace tensord::core
