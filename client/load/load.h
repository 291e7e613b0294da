// Sends the calls of a mix to a server.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "client/load/mix.h"
#include "client/load/operation.h"
#include "client/load/statistics.h"
#include "client/load/workers.h"
#include "tensord/credentials.h"
#include "tensord/server.h"
#include "tensord/session.h"

namespace tensord::load {

struct LoadOptions {
  std::string address;
  std::string job;
  std::string device;  // empty: the server's first
  Credentials credentials;
  double rate_per_s = 0;  // open loop; 0: closed loop
  int closed = 0;         // callers of a closed loop
  int sessions = 1;       // each with connections of its own
  absl::Duration warm_up = absl::Seconds(1);
  absl::Duration measured = absl::Seconds(10);
  absl::Duration timeout = absl::Seconds(60);  // of each call
  int most_under_way = 256;  // calls of an open loop at a time
  int64_t seed = 1;
};

/// What happened in about a second.
struct IntervalRow {
  absl::Duration end;  // as of CallTimes
  Interval interval;
};

struct LoadResult {
  std::vector<Counts> counts;  // (operation)
  absl::Duration measured;     // shorter than asked for if interrupted
  bool is_interrupted = false;
};

/// An open loop sends calls at the times of a Poisson process, whether or not
/// earlier ones have ended; those that find too many under way are not sent. In
/// a closed loop each caller sends a call when its last one has ended.
class Load {
 public:
  /// Opens the sessions, puts tensors there and checks the operations.
  /// Lifetime  refers to `mix`.
  static absl::StatusOr<std::unique_ptr<Load>> Prepare(
      const LoadOptions& options, const Mix& mix,
      std::vector<absl::Duration> good_within);

  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  const std::string& server_version() const { return server_version_; }
  const std::string& device() const { return sessions_.front().device(); }

  /// Once. Calls `on_interval` about each second, and returns when the calls
  /// have ended; early, without waiting for them, once `is_interrupted`.
  LoadResult Run(const std::function<bool()>& is_interrupted,
                 const std::function<void(const IntervalRow&)>& on_interval);

  /// Closes the sessions, which ends calls that are under way. False: some do
  /// not end; this must not be destroyed then.
  bool Close();

 private:
  using Clock = std::chrono::steady_clock;

  Load(const LoadOptions& options, const Mix& mix,
       std::vector<absl::Duration> good_within);

  absl::Status Open();
  absl::Duration Now() const { return absl::FromChrono(Clock::now() - start_); }
  void StartCallers();
  void SendOnSchedule();
  void Call(int operation, int session, absl::Duration intended);

  const LoadOptions options_;
  const Mix& mix_;
  std::string server_version_;
  std::vector<TensorContents> contents_;  // (operation)
  std::vector<Session> sessions_;
  // (session)(operation); those of weight 0 are null.
  std::vector<std::vector<std::unique_ptr<Operation>>> operations_;
  Statistics statistics_;
  Clock::time_point start_;  // of what is measured
  absl::Notification stopping_;
  Workers workers_;
};

}  // namespace tensord::load
