// QueueReductionGroups(), to be instantiated by type.
#pragma once

#include "core/backend/cuda/kernel/groups/reduction_columns.cuh"
#include "core/backend/cuda/kernel/groups/reduction_rows.cuh"
#include "core/backend/cuda/kernel/launch.cuh"

namespace tensord::core::cuda {

template <typename Stored, BinaryOperator op>
cudaError_t QueueReductionGroupsOf(const ReductionGroupsTask& task,
                                   cudaStream_t stream) {
  using T = ComputedIn<Stored>;
  constexpr uint32_t kThreads = ReductionGroupsTask::kThreads;
  const auto tiles = [&](uint32_t of_tile) {
    return (task.kept.count + of_tile - 1) / of_tile * task.split_count.divisor;
  };
  const uint32_t rows_at_once = kThreads >> task.thread_bits;
  Grid grid{.threads = kThreads};
  switch (task.way) {
    case ReductionWay::kShortRows:
      grid.blocks = tiles(Batch<Stored>::kAtOnce * rows_at_once);
      return Launch(grid, stream, &ShortRows<Stored, op>, task);
    case ReductionWay::kLongRows:
      grid.blocks = tiles(rows_at_once);
      grid.shared_bytes = kThreads / 32 * static_cast<int64_t>(sizeof(T));
      return Launch(grid, stream, &LongRows<Stored, op>, task);
    case ReductionWay::kColumns:
      grid.blocks = tiles(1u << task.thread_bits);
      grid.shared_bytes = int64_t{kGroupWidth<Stored>} * kColumnPitch<Stored> *
                          static_cast<int64_t>(sizeof(T));
      return Launch(grid, stream, &Columns<Stored, op>, task);
    case ReductionWay::kTree: break;
  }
  return cudaErrorInvalidValue;
}

template <typename Stored>
cudaError_t QueueReductionGroups(const ReductionGroupsTask& task,
                                 cudaStream_t stream) {
  switch (task.formula.op) {
    case BinaryOperator::kAdd:
      return QueueReductionGroupsOf<Stored, BinaryOperator::kAdd>(task, stream);
    case BinaryOperator::kMul:
      return QueueReductionGroupsOf<Stored, BinaryOperator::kMul>(task, stream);
    default: break;  // MAX or MIN: others do not reduce
  }
  if constexpr (kIsComplex<Stored>) {
    return cudaErrorInvalidValue;  // refused by Validate()
  } else if (task.formula.op == BinaryOperator::kMax) {
    return QueueReductionGroupsOf<Stored, BinaryOperator::kMax>(task, stream);
  } else {
    return QueueReductionGroupsOf<Stored, BinaryOperator::kMin>(task, stream);
  }
}

}  // namespace tensord::core::cuda
