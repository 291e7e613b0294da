// What the kernels are given that reduce along a mode, and the functions that
// queue them. Plain C++: made by the .cc files, run by the .cu files.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/backend/cuda/kernel/index_space.h"
#include "core/backend/cuda/kernel/reduction_tasks.h"

namespace tensord::core::cuda {

/// Blocks of `kept_threads` kept elements by `row_threads` threads each, which
/// share a chunk of the mode: kItems elements a thread at a time.
///
/// With several chunks the first launch finds what each comes to, the second
/// (JoinTotalsTask) joins that with those before, the third has the results.
struct ScanTask {
  static constexpr uint32_t kThreads = 256;
  static constexpr uint32_t kItems = 4;

  ReductionFormula formula;
  AlongMode along;
  uint32_t kept_threads = 1;  // powers of two, kThreads together
  uint32_t row_threads = kThreads;
  /// Neighbouring threads take neighbours along the mode.
  bool along_is_fastest = true;
  uint32_t chunk_count = 1;
  int64_t chunk = 1;       // elements along the mode; of the last one the rest
  void* totals = nullptr;  // (kept, chunk) in the compute type, or null
  bool finds_totals = false;
  IndexSpace<3> kept;  // a, c, d
};
cudaError_t QueueScan(const ScanTask& task, cudaStream_t stream);

/// Makes totals of chunks totals of all chunks from the first on.
struct JoinTotalsTask {
  ReductionFormula formula;
  uint32_t kept_count = 1;
  uint32_t chunk_count = 1;
  void* totals = nullptr;
};
cudaError_t QueueJoinTotals(const JoinTotalsTask& task, cudaStream_t stream);

/// An element that is sorted. Pairs that differ in nothing do not occur.
struct SortPair {
  uint64_t key;
  int64_t index;
};

/// Kept elements from the `first`-th on whose elements along the mode are
/// sorted.
struct SortTask {
  static constexpr uint32_t kThreads = 256;
  static constexpr uint32_t kBlock = 2048;  // elements that a block sorts

  ReductionFormula formula;  // without a nothing is sorted
  Sorting sorting = Sorting::kAscending;
  AlongMode along;
  uint32_t first = 0;
  uint32_t kept_count = 1;
  /// Elements that are sorted together: a power of two up to kBlock.
  uint32_t run = kBlock;
  const SortPair* from = nullptr;  // (kept, along)
  SortPair* to = nullptr;          // likewise; null: d
  IndexSpace<3> kept;              // a, c, d
};
/// Sorts runs of a, to pairs or, where there is one for each kept element, to
/// d.
cudaError_t QueueSortRuns(const SortTask& task, cudaStream_t stream);
/// Merges runs of `run` pairs, of any length, two at a time.
cudaError_t QueueMergeRuns(const SortTask& task, int64_t run,
                           cudaStream_t stream);
/// The indices of pairs, to d.
cudaError_t QueueStoreIndices(const SortTask& task, cudaStream_t stream);

}  // namespace tensord::core::cuda
