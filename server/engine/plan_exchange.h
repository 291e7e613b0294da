// Servers that share what they learn, through Redis.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/plan/plan_cache.h"

namespace tensord::server {

class RedisConnection;

/// Sends what the cache has learned, and takes in what others have, on an
/// interval, on a thread of its own: nobody who asks for a plan waits for it.
///
/// In Redis, PREFIX:plan:ID holds a record and goes when nobody has sent it for
/// long, the sorted set PREFIX:index has the ids by the number of the change,
/// and PREFIX:changes counts those. PREFIX:epoch tells one beginning of all
/// this from another. The prefix has the format's version.
///
/// What comes is not believed: it is a record of the cache's, looked at when
/// its key is asked for. Every wait is bounded; after failures, the thread
/// tries again less and less often.
///
/// Threads   safe for concurrent use.
/// Lifetime  the cache must outlive it.
class PlanExchange {
 public:
  struct Options {
    std::string address;   // HOST:PORT or unix:/PATH
    std::string password;  // empty: none
    std::string prefix = "tensord:1";
    absl::Duration interval = absl::Seconds(10);
    absl::Duration timeout = absl::Milliseconds(200);  // of each wait
    absl::Duration longest_pause = absl::Minutes(1);
    absl::Duration time_to_live = absl::Hours(24 * 30);
  };
  struct Statistics {
    bool is_connected = false;
    int64_t sent_count = 0;
    int64_t received_count = 0;  // taken in
    int64_t refused_count = 0;   // were no records, or too large
    int64_t error_count = 0;     // exchanges that failed
    absl::Time exchanged_at = absl::InfinitePast();
    std::string error;  // of the last exchange; empty: none
  };
  /// Hears when exchanges begin to fail, and when they work again.
  using Report = absl::AnyInvocable<void(const absl::Status& status) const>;

  PlanExchange(Options options, core::PlanCache& cache, Report report);
  ~PlanExchange();

  PlanExchange(const PlanExchange&) = delete;
  PlanExchange& operator=(const PlanExchange&) = delete;

  /// Exchanges now.
  ///
  /// Errors  UNAVAILABLE, reason PLAN_EXCHANGE_FAILED: Redis does not answer,
  ///         or refuses.
  absl::Status Exchange();

  const std::string& address() const { return options_.address; }
  Statistics statistics() const;

 private:
  void Run();
  absl::Status ExchangeOver(RedisConnection& redis)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(exchange_mutex_);
  /// Forgets what Redis had when it has lost it.
  absl::Status CheckEpoch(RedisConnection& redis)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(exchange_mutex_);
  absl::Status Receive(RedisConnection& redis)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(exchange_mutex_);
  absl::Status ReceiveRecord(RedisConnection& redis, absl::string_view id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(exchange_mutex_);
  absl::Status Send(RedisConnection& redis)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(exchange_mutex_);

  const Options options_;
  core::PlanCache& cache_;
  const Report report_;

  absl::Mutex exchange_mutex_;  // one at a time
  std::unique_ptr<RedisConnection> redis_ ABSL_GUARDED_BY(exchange_mutex_);
  /// PREFIX:epoch, as it was last.
  std::string epoch_ ABSL_GUARDED_BY(exchange_mutex_);
  /// Number of the last change that was seen.
  int64_t seen_change_ ABSL_GUARDED_BY(exchange_mutex_) = 0;
  /// Hashes of records as they were sent or taken in, by id.
  absl::flat_hash_map<uint64_t, uint64_t> known_
      ABSL_GUARDED_BY(exchange_mutex_);

  mutable absl::Mutex mutex_;
  int socket_ ABSL_GUARDED_BY(mutex_) = -1;  // of redis_, to end its waits
  Statistics statistics_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tensord::server
