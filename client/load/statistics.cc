#include "client/load/statistics.h"

#include <utility>

#include "tensord/status.h"

namespace tensord::load {

void Counts::Add(const Counts& other) {
  sent += other.sent;
  ok += other.ok;
  failed += other.failed;
  not_sent += other.not_sent;
  in_time += other.in_time;
  good += other.good;
  transferred_bytes += other.transferred_bytes;
  latency.Add(other.latency);
  lateness.Add(other.lateness);
  queued.Add(other.queued);
  executed.Add(other.executed);
  for (const auto& [key, error] : other.errors) {
    ErrorCount& mine = errors[key];
    if (mine.count == 0) mine.example = error.example;
    mine.count += error.count;
  }
}

void Statistics::NoteSent(int operation, absl::Duration intended) {
  absl::MutexLock lock(&mutex_);
  ++under_way_;
  ++interval_.sent;
  if (intended >= absl::ZeroDuration()) ++counts_[operation].sent;
}

void Statistics::NoteNotSent(int operation, absl::Duration intended) {
  absl::MutexLock lock(&mutex_);
  ++interval_.not_sent;
  if (intended >= absl::ZeroDuration()) ++counts_[operation].not_sent;
}

void Statistics::NoteEnded(int operation, const CallTimes& times,
                           const CallOutcome& outcome) {
  const bool ok = outcome.status.ok();
  const absl::Duration latency = times.latency();
  absl::MutexLock lock(&mutex_);
  --under_way_;
  ++(ok ? interval_.ok : interval_.failed);
  if (ok) interval_.latency.Add(latency);

  Counts& counts = counts_[operation];
  if (ok && times.ended >= absl::ZeroDuration() && times.ended <= measured_) {
    ++counts.in_time;
    if (latency <= good_within_[operation]) ++counts.good;
    counts.transferred_bytes += outcome.transferred_bytes;
  }
  if (times.intended < absl::ZeroDuration()) return;
  counts.lateness.Add(times.sent - times.intended);
  if (!ok) {
    ++counts.failed;
    ErrorCount& error =
        counts.errors[{absl::StatusCodeToString(outcome.status.code()),
                       ReasonOf(outcome.status)}];
    if (error.count++ == 0)
      error.example = std::string(outcome.status.message());
    return;
  }
  ++counts.ok;
  counts.latency.Add(latency);
  if (!outcome.has_report) return;
  counts.queued.Add(outcome.queued);
  counts.executed.Add(outcome.executed);
}

void Statistics::CutShort(absl::Duration measured) {
  absl::MutexLock lock(&mutex_);
  measured_ = measured;
}

Interval Statistics::TakeInterval() {
  absl::MutexLock lock(&mutex_);
  interval_.under_way = under_way_;
  return std::exchange(interval_, {});
}

std::vector<Counts> Statistics::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

}  // namespace tensord::load
