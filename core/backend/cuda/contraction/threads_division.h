// How single threads share a contraction.
#pragma once

#include <cstdint>

#include "core/backend/cuda/gpu_model.h"
#include "core/backend/cuda/kernel/contraction_tasks.h"
#include "core/problem/contraction_problem.h"

namespace tensord::core::cuda {

/// The work of one contraction, dealt out to threads that each have up to
/// `micro` x `micro` elements of d.
///
/// Threads  immutable value; share freely.
struct ThreadsDivision {
  int64_t micro = 1;
  bool swaps = false;
  bool batch_first = false;  // neighbours are neighbours along batches
  uint32_t log_sharers = 0;  // 2^log_sharers threads share an element's terms
  int64_t tiles_m = 1;
  int64_t tiles_n = 1;
  int64_t batch_count = 1;
  double nanoseconds = 0;  // predicted

  int64_t thread_count() const {
    return (tiles_m * tiles_n * batch_count) << log_sharers;
  }
};

/// Most threads: those that fill up the last block have numbers, too.
inline constexpr int64_t kMostThreads =
    kMaxIndex - ContractionThreadsTask::kThreads;

/// The division with the least predicted time; terms are not shared where there
/// would be more than kMostThreads.
///
/// A function of the problem and the model: addresses and factors change
/// nothing.
/// Requires  IsDirectType(problem.type_d).
ThreadsDivision DivideByThreads(const GpuModel& model,
                                const ContractionProblem& problem,
                                int64_t micro);

}  // namespace tensord::core::cuda
