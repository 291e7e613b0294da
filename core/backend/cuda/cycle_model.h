// How long a kernel that does little but move memory takes: the MWP-CWP model
// as A. Hynninen and D. Lyakh, "cuTT" (2017), section 3, have it, equations 10
// to 13 and table I.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/backend/cuda/gpu_model.h"

namespace tensord::core::cuda {

/// What warps ask of memory in one turn of a block: a tile read and written.
struct AccessCounts {
  double load_requests = 0;  // of a whole warp
  double load_transactions = 0;
  double store_requests = 0;
  double store_transactions = 0;
  double full_lines = 0;     // of 32 bytes, written by the tile as a whole
  double partial_lines = 0;  // lines of which the tile writes a part

  AccessCounts& operator+=(const AccessCounts& other);
};

/// The words that a block loads and stores in one turn, in the order in which
/// its threads take them: neighbours make a warp.
class TileAccesses {
 public:
  /// Units  words of `load_bytes` and `store_bytes`, from the tile's first one.
  TileAccesses(const std::vector<int64_t>& loads, int load_bytes,
               std::vector<int64_t> stores, int store_bytes);

  /// Tiles with the same result cost the same: memory moves lines that begin at
  /// multiples of 128 bytes.
  std::array<int64_t, 2> AlignmentOf(int64_t load_base,
                                     int64_t store_base) const;

  /// The cost of a tile whose first words lie at `load_base` and `store_base`.
  AccessCounts Count(int64_t load_base, int64_t store_base) const;

 private:
  /// Neighbouring words.
  struct Run {
    int64_t first;
    int64_t count;
  };
  using Runs = std::vector<Run>;
  /// Runs in the order of threads; none goes on in the next warp.
  struct WarpRuns {
    Runs runs;
    std::vector<size_t> ends;  // (warp) in runs
  };

  static Runs RunsOf(const std::vector<int64_t>& words);
  static WarpRuns WarpRunsOf(const Runs& runs);
  static void CountRequests(const WarpRuns& words, int64_t base, int bytes,
                            double& requests, double& transactions);
  static void CountLines(const Runs& runs, int64_t base, int bytes,
                         double& full, double& partial);

  const int load_bytes_;
  const int store_bytes_;
  const WarpRuns loads_;
  Runs sorted_stores_;  // in the order of threads until stores_ is made
  const WarpRuns stores_;
};

/// A kernel as the model sees it.
struct KernelShape {
  double warps_per_block = 1;
  double warps_per_multiprocessor = 1;
  /// Requests of a warp that are under way at once: MLP.
  double parallel_requests = 1;
  /// Transactions of shared memory for a request, more with bank conflicts.
  double shared_transactions = 1;
};

/// Cycles that one multiprocessor takes for one turn of one block.
/// Source  equations 10, 11 and 13 of cuTT for N_iter = 1.
double TurnCycles(const GpuModel& model, const KernelShape& kernel,
                  const AccessCounts& accesses);

}  // namespace tensord::core::cuda
