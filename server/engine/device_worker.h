// The queue of a device, and the threads that work it off.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/device/device.h"

namespace tensord::server {

/// Runs jobs of many clients on one device.
///
/// One thread launches jobs: those of a client in the order in which they were
/// added, on a stream that the client keeps as long as it has any, and shares
/// when there are many clients. Clients take turns, a job each, so that a long
/// queue of one does not hold up others.
/// Launching runs ahead of the device, by a bounded number of jobs a client. A
/// second thread completes jobs when the device is done with them, those of a
/// client in order. Where work is done as soon as it is launched, as on the
/// host, the first thread does all.
///
/// A job that finds no memory is launched again, if it can be, once the jobs
/// that were under way have ended; it fails when that did not help.
///
/// Threads  safe for concurrent use.
class DeviceWorker {
 public:
  /// When the device worked on a job: from its launch, or from the end of the
  /// client's job before it, to its own end.
  struct Times {
    absl::Time begun;
    absl::Time ended;
  };

  /// Is told when a job has ended.
  class Listener {
   public:
    virtual void Ended(const absl::Status& status) = 0;

   protected:
    ~Listener() = default;
  };

  /// Owned by whoever adds it; launched and completed once, unless removed
  /// first.
  class Job {
   public:
    /// What Launch() has done.
    struct Outcome {
      absl::Status status;
      /// A part of the work is queued: Launch() is called again, for the next
      /// one, when other clients had their turns.
      bool is_part = false;
      /// Nothing has changed for lack of memory: Launch() may be called again.
      bool may_be_repeated = false;
    };

    /// Queues the job's work, or the next part of it.
    virtual Outcome Launch(core::Stream& stream) = 0;
    /// `status` is what Launch() returned or else what the work ended with;
    /// none of it is under way any more.
    virtual void Complete(const absl::Status& status, const Times& times) = 0;

    /// Whether it should be launched when nothing else is under way, as what
    /// takes times should; it is anyway when that takes long. Asked before each
    /// Launch(), on the thread that calls it.
    bool wants_device_alone() const { return wants_device_alone_; }
    /// Who is told after Complete(), and may end the job's life then.
    Listener* listener() const { return listener_; }
    void set_listener(Listener* listener) { listener_ = listener; }

   protected:
    explicit Job(bool wants_device_alone = false)
        : wants_device_alone_(wants_device_alone) {}
    ~Job() = default;

    /// From within Launch(): of the parts that follow.
    void set_wants_device_alone(bool wants) { wants_device_alone_ = wants; }

   private:
    bool wants_device_alone_;
    Listener* listener_ = nullptr;
  };

  struct Statistics {
    int64_t queued_count = 0;
    int64_t executed_count = 0;  // launched
    absl::Duration busy;         // time with any job launched and not completed
  };

  using CreateStream =
      std::function<absl::StatusOr<std::unique_ptr<core::Stream>>()>;

  /// `stream` is the first, `create_stream` makes others.
  /// Requires  queue_limit >= 1.
  DeviceWorker(std::unique_ptr<core::Stream> stream, CreateStream create_stream,
               int64_t queue_limit);
  /// Runs what is queued. Nothing may be added any more.
  ~DeviceWorker();

  /// Queues `job` behind the others of `client`.
  /// Errors  RESOURCE_EXHAUSTED, reason QUEUE_FULL: queue_limit jobs of this
  ///         client wait already; those of others do not count.
  absl::Status Add(uint64_t client, Job* job);

  /// True when `job` was still queued, no part of it launched; it will then
  /// never run.
  bool Remove(uint64_t client, Job* job);

  Statistics statistics() const;

 private:
  struct Launched {
    Job* job;
    uint64_t number;  // counted over all clients
    absl::Status status;
    std::unique_ptr<core::Event> end;  // null: reached
    absl::Time begun;
    bool is_part = false;  // the job goes on
    bool is_completing = false;
  };
  /// A stream and how many clients use it.
  struct SharedStream {
    std::unique_ptr<core::Stream> stream;
    int client_count = 0;
  };
  struct Client {
    std::deque<Job*> queued;
    std::deque<Launched> launched;
    SharedStream* stream = nullptr;  // null while there is no need of one
    bool is_launching = false;       // its stream is in use
    bool is_stalled = false;         // waits for memory; has no turn
    bool has_unfinished = false;     // in front of `queued`, launched in part
    absl::Time unfinished_since;     // its first launch
    // The first job in `queued` lacked memory: it fails when those numbered
    // below have ended and memory still lacks.
    std::optional<uint64_t> lacks_memory_until;
    absl::Time last_ended = absl::InfinitePast();
  };
  using Clients = absl::node_hash_map<uint64_t, Client>;

  void Launch();
  void Complete();
  /// Gives the client a stream unless it has one: one that nobody uses, a new
  /// one, or the one that fewest use.
  absl::Status ProvideStream(Client& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LaunchNext(uint64_t id, Client& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Puts a job back that lacked memory when the jobs from `oldest` to before
  /// `next` were under way; false when it is to fail.
  bool Stall(uint64_t id, Client& client, Job* job,
             std::optional<uint64_t> oldest, uint64_t next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Those that wait for memory may try again.
  void EndStalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// The least number of those launched and not completed, if any.
  std::optional<uint64_t> OldestLaunched() const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  /// Completes the first launched job of `client`, without the lock.
  void CompleteFirst(uint64_t id, Client& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseIfIdle(uint64_t id, Client& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountBusy(int change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CreateStream create_stream_;
  const int64_t queue_limit_;
  mutable absl::Mutex mutex_;
  absl::CondVar can_launch_;
  absl::CondVar has_launched_;
  Clients clients_ ABSL_GUARDED_BY(mutex_);
  // Clients with queued jobs that are not stalled, the next one in front.
  std::deque<uint64_t> turns_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> stalled_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<SharedStream>> streams_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t for_completer_ ABSL_GUARDED_BY(mutex_) = 0;  // launched jobs
  int busy_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time busy_since_ ABSL_GUARDED_BY(mutex_);
  Statistics statistics_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool launches_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread launcher_;
  std::thread completer_;
};

}  // namespace tensord::server
