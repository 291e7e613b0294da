// Which kernel is fastest, by the times that they took.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tensord::core {

/// Kernels that predict more than this many times the least prediction are not
/// tried.
inline constexpr double kHopelessFactor = 50;

/// Times of each kernel, of which the least counts: what disturbs a run makes
/// it longer, never shorter, and the first one may find cold caches. So the
/// least of a few is nearer to the kernel's own time than their median.
inline constexpr int kTuningSamples = 3;

/// Times that differ by less than this part do so by chance.
inline constexpr double kTuningBand = 0.05;

/// What is known of one kernel for one problem.
struct KernelTime {
  double predicted_nanoseconds = 0;
  std::optional<double> measured_nanoseconds;
};

/// The kernel to take of `kernels`, in the planner's order; nothing when none
/// was measured. Of those within kTuningBand of the least time the one with the
/// least prediction, of equals the first: so the choice is the same although
/// times vary. `incumbent` stays unless it is beaten by more than the band.
std::optional<size_t> ChooseMeasured(
    std::span<const KernelTime> kernels,
    std::optional<size_t> incumbent = std::nullopt);

/// The times of one kernel, as they are kept.
struct KernelTimes {
  std::string kernel;
  int version = 1;                  // Kernel::version() of then
  std::vector<double> nanoseconds;  // (sample)

  bool operator==(const KernelTimes&) const = default;
};

/// One kernel that may be tried.
struct TuningCandidate {
  std::string kernel;
  int version = 1;
  double predicted_nanoseconds = 0;
};

/// INCREMENTAL selection for one problem: who is to be tried next, and who was
/// the fastest. Says the same given the same samples.
///
///   for (each execution) {
///     if (const auto next = tuning.NextToTry()) run it, else run the incumbent
///     tuning.AddSample(*next, its time)      // or AddFailure(*next)
///   }
///
/// Threads  none of its own: whoever shares it locks.
class Tuning {
 public:
  /// `candidates` in the planner's order. The hopeless are never tried.
  explicit Tuning(std::vector<TuningCandidate> candidates);

  std::span<const TuningCandidate> candidates() const { return candidates_; }

  /// Takes over what was measured before, where kernel and version are the
  /// same.
  void Restore(std::span<const KernelTimes> times);

  /// Position of the candidate to run now: the one with the fewest samples,
  /// those under way included, and of equals the first. Nothing when all have
  /// been handed out often enough. What was handed out and never heard of again
  /// is handed out anew after a while.
  std::optional<size_t> NextToTry();

  /// `candidate` took that long. More than kTuningSamples are not kept.
  void AddSample(size_t candidate, double nanoseconds);

  /// `candidate` could not run: it is not tried again, and not taken.
  void AddFailure(size_t candidate);

  /// Position of that kernel.
  std::optional<size_t> Find(absl::string_view kernel) const;

  /// True when nobody is left to be tried.
  bool is_complete() const;

  /// Least time of `candidate` so far.
  std::optional<double> MeasuredNanoseconds(size_t candidate) const;

  /// As ChooseMeasured().
  std::optional<size_t> Choice(
      std::optional<size_t> incumbent = std::nullopt) const;

  /// Samples so far, of those candidates that have any.
  std::vector<KernelTimes> Times() const;

  /// Samples so far, and how many there will be.
  int sample_count() const;
  int wanted_sample_count() const;

  /// Bytes of memory, those of the object itself not included.
  int64_t HeapBytes() const;

 private:
  struct State {
    std::vector<double> samples;
    int under_way = 0;  // handed out, not heard of
    bool is_out = false;
  };

  std::vector<TuningCandidate> candidates_;
  std::vector<State> states_;  // (candidate)
  int idle_calls_ = 0;         // of NextToTry, since it last gave or heard one
};

}  // namespace tensord::core
