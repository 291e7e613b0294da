#include "core/backend/cuda/contraction/threads_division.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/backend/cuda/contraction/contraction_division.h"
#include "core/backend/cuda/contraction/tile_efficiency.h"
#include "core/base/checked_math.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;
using Division = ThreadsDivision;

constexpr double kWarp = 32;
constexpr double kSector = 32, kLine = 128;  // bytes
// Guesses, to be fitted: threads on a multiprocessor at a time, terms that a
// thread has under way, what each wait for memory takes, and the part of the
// arithmetic that multiplies.
constexpr double kResidentThreads = 1024;
constexpr double kTermsAtOnce = 4;
constexpr double kLatencyNs = 700;
constexpr double kEfficiency = 0.5;
// How many times as long as the longest of these it takes, by elements along a
// thread's side: fitted to an H100 (tests/benchmarks/results/2026-11-27-gpu-*).
constexpr double kSlowdownOfOne = 1.6, kSlowdownOfMore = 2.8;

double Count(int64_t x) { return static_cast<double>(x); }

/// A mode along which neighbouring threads are neighbours; of extent 1 when
/// there is none.
struct Neighbours {
  int64_t extent = 1;
  int64_t stride_a = 0, stride_b = 0, stride_d = 0;
};

/// In the order in which the kernel counts elements.
Neighbours NeighboursOf(const DirectModes& modes, const Division& division) {
  const auto of_batch = [&]() -> Neighbours {
    const auto& [extent, s] = modes.batch[0];
    return {extent, s[Problem::kBatchA], s[Problem::kBatchB],
            s[Problem::kBatchD]};
  };
  if (division.batch_first && !modes.batch.empty()) return of_batch();
  if (!modes.m.empty()) {
    const auto& [extent, s] = modes.m[0];
    return {extent, division.micro * s[Problem::kFreeInput], 0,
            division.micro * s[Problem::kFreeD]};
  }
  if (!modes.n.empty()) {
    const auto& [extent, s] = modes.n[0];
    return {extent, 0, division.micro * s[Problem::kFreeInput],
            division.micro * s[Problem::kFreeD]};
  }
  return modes.batch.empty() ? Neighbours{} : of_batch();
}

/// What it costs to access an operand.
struct Access {
  double bytes;  // between memory and cache, for each byte of the operand
  double lines;  // of the cache, for each access of a warp
};

/// Of `run` neighbours `stride` elements apart; other threads are elsewhere.
Access AccessOf(double element_bytes, int64_t run, int64_t stride) {
  const double neighbours = std::min(Count(run), kWarp);
  const double apart = element_bytes * Count(stride);
  const double lines = kWarp / neighbours *
                       std::clamp(neighbours * apart / kLine, 1.0, neighbours);
  return {std::max(std::min(apart, kSector) / element_bytes, 1.0), lines};
}

/// Sets what the division, of which all else is decided, should take.
void Predict(const GpuModel& model, const Problem& problem,
             const DirectModes& modes, Division& division) {
  const double bytes = Count(SizeOf(problem.type_d));
  const double m = Count(ElementCount(modes.m));
  const double n = Count(ElementCount(modes.n));
  const double k = Count(ElementCount(modes.k));
  const double batch = Count(division.batch_count);
  const double threads = Count(division.thread_count());
  const double sharers = Count(int64_t{1} << division.log_sharers);
  const double micro = Count(division.micro);
  const double terms = std::ceil(k / sharers);  // of a thread

  const Neighbours along = NeighboursOf(modes, division);
  const auto access = [&](int64_t stride, size_t operand_of_k) -> Access {
    const bool has_k = !modes.k.empty();
    const int64_t of_k = has_k ? modes.k[0].strides[operand_of_k] : 0;
    if (division.log_sharers > 0) {
      return AccessOf(bytes, int64_t{1} << division.log_sharers, of_k);
    }
    Access found = AccessOf(bytes, along.extent, stride);
    // The thread itself reads the rest of a sector, and that soon.
    if (of_k == 1) {
      found.bytes = std::max(found.bytes / Count(modes.k[0].extent), 1.0);
    }
    return found;
  };
  const Access a = access(along.stride_a, Problem::kSumA);
  const Access b = access(along.stride_b, Problem::kSumB);
  const Access d = AccessOf(bytes, along.extent, along.stride_d);

  const double resident = kResidentThreads * model.multiprocessor_count;
  const double waves = std::ceil(threads / resident);
  const double multiprocessors = std::min<double>(
      model.multiprocessor_count, std::ceil(threads / kResidentThreads));
  const double memory = bytes * batch *
                        (m * k * a.bytes + k * n * b.bytes + m * n * d.bytes) /
                        model.copy_bytes_per_ns();
  const double lines =
      threads / kWarp *
      (micro * terms * (a.lines + b.lines) + micro * micro * d.lines);
  const double compute =
      threads * terms * micro * micro /
      (DirectProductsPerCycle(model, problem.type_d) * kEfficiency);
  division.nanoseconds =
      model.launch_ns +
      (division.micro == 1 ? kSlowdownOfOne : kSlowdownOfMore) *
          std::max(
              {memory,
               std::max(lines, compute) / (multiprocessors * model.clock_ghz),
               waves * (1 + terms / kTermsAtOnce) * kLatencyNs});
}

}  // namespace

Division DivideByThreads(const GpuModel& model, const Problem& problem,
                         int64_t micro) {
  Division best;
  best.nanoseconds = std::numeric_limits<double>::infinity();
  for (const bool swaps : {false, true}) {
    // k as in a, which with the swap is either input.
    const DirectModes modes = *DirectModesOf(problem, swaps, TermOrder::kAsInA);
    for (const bool batch_first : {false, true}) {
      for (const uint32_t log_sharers : {0, 3, 5}) {
        Division division{.micro = micro,
                          .swaps = swaps,
                          .batch_first = batch_first,
                          .log_sharers = log_sharers,
                          .tiles_m = CeilDivide(ElementCount(modes.m), micro),
                          .tiles_n = CeilDivide(ElementCount(modes.n), micro),
                          .batch_count = ElementCount(modes.batch)};
        if (log_sharers > 0 &&
            (int64_t{1} << log_sharers > ElementCount(modes.k) ||
             division.thread_count() > kMostThreads)) {
          continue;
        }
        Predict(model, problem, modes, division);
        if (division.nanoseconds < best.nanoseconds) best = division;
      }
    }
  }
  return best;
}

}  // namespace tensord::core::cuda
