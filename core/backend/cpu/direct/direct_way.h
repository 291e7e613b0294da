// How a contraction is cut into blocks that are packed and multiplied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "core/backend/cpu/direct/panel_pack.h"
#include "core/backend/cpu/direct/tile_product.h"
#include "core/backend/cpu/gemm/gemm_strategy.h"
#include "core/base/checked_math.h"
#include "core/base/heap_bytes.h"
#include "core/problem/contraction_problem.h"

namespace tensord::core {

/// Modes of one group in the order in which blocks count them, and how much of
/// each a block has.
///
/// Units  strides count elements.
template <size_t operand_count>
struct BlockModes {
  using Sizes = absl::InlinedVector<int64_t, 8>;  // (mode)

  LoopModes<operand_count> modes;
  Sizes parts;
  /// Unless 0, the mode before which places are left empty up to a multiple of
  /// `pads_to`, a panel: so it begins in a new panel.
  size_t padded = 0;
  int64_t pads_to = 1;
  /// The tensor that is read is contiguous along the last mode. Blocks advance
  /// along it first, so that the rest of their cache lines and pages is read
  /// soon.
  bool last_is_unit = false;

  int64_t heap_bytes() const { return HeapBytes(modes) + HeapBytes(parts); }
  /// Blocks of the whole.
  int64_t block_count() const;
  /// Places of a block whose modes have `sizes`.
  int64_t PlacesOf(const Sizes& sizes) const;
  int64_t most_places() const { return PlacesOf(parts); }
  /// A block whose modes have `sizes`, in an operand.
  PackModes In(size_t operand, const Sizes& sizes) const;
};

/// One way through a contraction of float32 or float64: blocks of rows by
/// columns of d, over blocks of terms. A vector holds rows.
struct DirectWay {
  static constexpr size_t kInput = 0, kC = 1, kD = 2;  // rows, columns
  static constexpr size_t kX = 0, kY = 1;              // terms

  ElementType type = ElementType::kFloat32;
  bool swaps = false;  // x is b, and rows are n; else a, and m
  size_t shape = 0;    // in TileShapes()
  TileShape tile = {};
  bool splits_runs = false;  // panels have one run of d's rows each
  BlockModes<3> rows;
  BlockModes<3> columns;
  BlockModes<2> terms;
  LoopModes<4> batch;  // (x, y, c, d)
  /// Blocks of rows of a task, which has one block of columns.
  int64_t row_blocks_per_task = 1;
  bool streams = false;
  double nanoseconds = 0;  // predicted, for the whole

  int64_t row_ranges() const {
    return CeilDivide(rows.block_count(), row_blocks_per_task);
  }
  int64_t task_count() const {
    return ElementCount(batch) * columns.block_count() * row_ranges();
  }
  /// Of one thread's packed blocks.
  int64_t x_elements() const;
  int64_t y_elements() const;
  int64_t heap_bytes() const {
    return rows.heap_bytes() + columns.heap_bytes() + terms.heap_bytes() +
           HeapBytes(batch);
  }
};

/// All ways, of both roles that the inputs can have and of every tile.
///
/// Errors  UNIMPLEMENTED: operands are not all float32 or all float64, are
///         rounded, have modes of their own, there are no terms, or vectors are
///         of no known length.
absl::StatusOr<std::vector<DirectWay>> DirectWays(
    const ContractionProblem& problem, const GemmRates& rates);

/// The one that `rates` say is fastest. A pure function of its arguments.
/// Errors  as DirectWays().
absl::StatusOr<DirectWay> ChooseDirectWay(const ContractionProblem& problem,
                                          const GemmRates& rates);

}  // namespace tensord::core
