#include "core/plan/tuning.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/heap_bytes.h"

namespace tensord::core {
namespace {

/// Calls in vain after which what is under way counts as lost.
constexpr int kPatience = 64;

}  // namespace

std::optional<size_t> ChooseMeasured(std::span<const KernelTime> kernels,
                                     std::optional<size_t> incumbent) {
  double least = std::numeric_limits<double>::infinity();
  for (const KernelTime& kernel : kernels) {
    if (kernel.measured_nanoseconds) {
      least = std::min(least, *kernel.measured_nanoseconds);
    }
  }
  const auto is_in_band = [&](const KernelTime& kernel) {
    return kernel.measured_nanoseconds &&
           *kernel.measured_nanoseconds <= least * (1 + kTuningBand);
  };
  if (incumbent && is_in_band(kernels[*incumbent])) return incumbent;
  std::optional<size_t> choice;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (is_in_band(kernels[i]) &&
        (!choice || kernels[i].predicted_nanoseconds <
                        kernels[*choice].predicted_nanoseconds)) {
      choice = i;
    }
  }
  return choice;
}

Tuning::Tuning(std::vector<TuningCandidate> candidates)
    : candidates_(std::move(candidates)), states_(candidates_.size()) {
  double least = std::numeric_limits<double>::infinity();
  for (const TuningCandidate& candidate : candidates_) {
    least = std::min(least, candidate.predicted_nanoseconds);
  }
  for (size_t i = 0; i < candidates_.size(); ++i) {
    states_[i].is_out =
        candidates_[i].predicted_nanoseconds > kHopelessFactor * least;
  }
}

void Tuning::Restore(std::span<const KernelTimes> times) {
  for (const KernelTimes& kept : times) {
    const std::optional<size_t> candidate = Find(kept.kernel);
    if (!candidate || candidates_[*candidate].version != kept.version) continue;
    for (const double sample : kept.nanoseconds) AddSample(*candidate, sample);
  }
}

std::optional<size_t> Tuning::NextToTry() {
  const auto take_next = [&]() -> std::optional<size_t> {
    std::optional<size_t> next;
    size_t fewest = kTuningSamples;
    for (size_t i = 0; i < states_.size(); ++i) {
      const State& state = states_[i];
      const size_t samples = state.samples.size() + state.under_way;
      if (!state.is_out && samples < fewest) {
        fewest = samples;
        next = i;
      }
    }
    if (next) ++states_[*next].under_way;
    return next;
  };
  std::optional<size_t> next = take_next();
  if (!next && !is_complete() && ++idle_calls_ > kPatience) {
    for (State& state : states_) state.under_way = 0;
    next = take_next();
  }
  if (next) idle_calls_ = 0;
  return next;
}

void Tuning::AddSample(size_t candidate, double nanoseconds) {
  State& state = states_[candidate];
  state.under_way = std::max(state.under_way - 1, 0);
  idle_calls_ = 0;
  if (state.samples.size() < kTuningSamples) {
    state.samples.push_back(nanoseconds);
  }
}

void Tuning::AddFailure(size_t candidate) {
  State& state = states_[candidate];
  state.under_way = 0;
  state.is_out = true;
  state.samples.clear();
}

std::optional<size_t> Tuning::Find(absl::string_view kernel) const {
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].kernel == kernel) return i;
  }
  return std::nullopt;
}

bool Tuning::is_complete() const {
  return std::ranges::all_of(states_, [](const State& state) {
    return state.is_out || state.samples.size() >= kTuningSamples;
  });
}

std::optional<double> Tuning::MeasuredNanoseconds(size_t candidate) const {
  const std::vector<double>& samples = states_[candidate].samples;
  if (samples.empty()) return std::nullopt;
  return *std::ranges::min_element(samples);
}

std::optional<size_t> Tuning::Choice(std::optional<size_t> incumbent) const {
  std::vector<KernelTime> times;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    times.push_back(
        {candidates_[i].predicted_nanoseconds, MeasuredNanoseconds(i)});
  }
  return ChooseMeasured(times, incumbent);
}

std::vector<KernelTimes> Tuning::Times() const {
  std::vector<KernelTimes> times;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (states_[i].samples.empty()) continue;
    times.push_back(
        {candidates_[i].kernel, candidates_[i].version, states_[i].samples});
  }
  return times;
}

int Tuning::sample_count() const {
  int count = 0;
  for (const State& state : states_) {
    if (!state.is_out) count += static_cast<int>(state.samples.size());
  }
  return count;
}

int Tuning::wanted_sample_count() const {
  return kTuningSamples *
         static_cast<int>(std::ranges::count_if(
             states_, [](const State& state) { return !state.is_out; }));
}

int64_t Tuning::HeapBytes() const {
  int64_t bytes = core::HeapBytes(candidates_) + core::HeapBytes(states_);
  for (const TuningCandidate& candidate : candidates_) {
    bytes += core::HeapBytes(candidate.kernel);
  }
  for (const State& state : states_) bytes += core::HeapBytes(state.samples);
  return bytes;
}

}  // namespace tensord::core
