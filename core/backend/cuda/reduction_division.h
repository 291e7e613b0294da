// How the threads of a GPU share a reduction.
#pragma once

#include <cstdint>

#include "core/backend/cuda/gpu_model.h"
#include "core/backend/cuda/kernel/reduction_tasks.h"
#include "core/problem/reduction_problem.h"

namespace tensord::core::cuda {

/// The work of one reduction, dealt out. A function of the problem and of the
/// number of multiprocessors: addresses and factors change nothing.
///
/// Threads  immutable value; share freely.
struct ReductionDivision {
  ReductionWay way = ReductionWay::kTree;
  int64_t kept_count = 1;     // elements of d
  int64_t kept_items = 1;     // the same, groups in columns
  int64_t reduced_items = 1;  // for each of them; groups in rows
  int64_t group_width = 1;    // elements of a in a group of 16 bytes
  /// Every group lies at a multiple of 16 bytes when a does.
  bool has_whole_groups = false;
  /// kTree: neighbouring threads take neighbours in the reduced modes.
  bool reduced_is_fastest = true;
  int64_t kept_threads = 1;  // of a block, powers of two
  int64_t reduced_threads = 1;
  int64_t kept_per_thread = 1;
  /// Blocks that share the reduced items: `part` each, and none without. Above
  /// 1, a second launch joins their results.
  int64_t split_count = 1;
  int64_t part = 1;

  int64_t tiles() const;
  int64_t block_count() const { return tiles() * split_count; }
};

/// The kept modes in the order of a: reading it matters most.
LoopModes<3> KeptInOrderOfA(const ReductionProblem& problem);

/// Element by element: takes everything.
ReductionDivision DivideElements(const GpuModel& model, int64_t kept_count,
                                 int64_t reduced_count,
                                 bool reduced_is_fastest);
ReductionDivision DivideElements(const GpuModel& model,
                                 const ReductionProblem& problem);

/// The division of a second launch, which joins `split_count` results for each
/// of `kept_count` elements: one block takes all of an element.
ReductionDivision DivideSecond(const GpuModel& model, int64_t kept_count,
                               int64_t split_count);

/// By groups where a has a contiguous mode and its elements are reduced as they
/// are, else element by element.
ReductionDivision Divide(const GpuModel& model,
                         const ReductionProblem& problem);

/// A task of a division element by element; its modes are to be added.
ReductionTreeTask TreeTaskOf(const ReductionFormula& formula,
                             const ReductionDivision& division);

/// Bytes of the results that the second launch joins.
int64_t PartialBytes(const ReductionProblem& problem,
                     const ReductionDivision& division);

/// Time for the whole, the second launch included: the longest of what memory
/// takes, in sectors; the instructions; and the latency that too few bytes
/// under way leave open.
double PredictReduction(const GpuModel& model, const ReductionProblem& problem,
                        const ReductionDivision& division);

}  // namespace tensord::core::cuda
