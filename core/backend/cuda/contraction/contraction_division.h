// How the threads of a GPU share a contraction.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "core/backend/cuda/contraction/direct_modes.h"
#include "core/backend/cuda/contraction/side_order.h"
#include "core/backend/cuda/gpu_model.h"
#include "core/backend/cuda/kernel/contraction_tasks.h"
#include "core/problem/contraction_problem.h"

namespace tensord::core::cuda {

/// The work of one contraction, dealt out.
///
/// Threads  immutable value; share freely.
struct ContractionDivision {
  DirectTile tile = DirectTile::kSquare;
  bool swaps = false;
  TermOrder terms = TermOrder::kAsInA;
  SideOrder m, n;
  DirectReading reading_a, reading_b;
  int64_t tiles_m = 1;
  int64_t tiles_n = 1;
  int64_t batch_count = 1;
  /// Blocks that share the terms of an element: `part` each, and none without.
  /// Above 1, a second launch adds their sums.
  int64_t split_count = 1;
  int64_t part = 1;
  double nanoseconds = 0;  // predicted, the second launch included
  double bytes = 0;        // that move between memory and multiprocessors

  int64_t block_count() const {
    return tiles_m * tiles_n * batch_count * split_count;
  }
};

/// Whether there are direct kernels for operands of the type.
bool IsDirectType(ElementType type);

/// OK when direct kernels can take the operands: one type, other than bool, and
/// at most kMaxIndex elements and terms.
///
/// Errors  UNIMPLEMENTED, with the reason.
absl::Status CheckDirect(const ContractionProblem& problem);

/// The division by `tile` with the least predicted time, over all orders of m
/// and n; of equals, the one that moves least. With `splits` blocks may share
/// the terms; split_count is 1 all the same where that gives no more blocks.
///
/// A function of the problem and the model: addresses and factors change
/// nothing.
/// Requires  IsDirectType(problem.type_d).
ContractionDivision Divide(const GpuModel& model,
                           const ContractionProblem& problem, DirectTile tile,
                           bool splits);

/// False when no division by `tile` splits the terms: there are enough blocks
/// without, or too few terms.
bool MaySplit(const GpuModel& model, const ContractionProblem& problem,
              DirectTile tile);

/// Bytes of the sums that the second launch adds.
int64_t PartialBytes(const ContractionProblem& problem,
                     const ContractionDivision& division);

}  // namespace tensord::core::cuda
