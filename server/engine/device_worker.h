// The queue of a device, and the threads that work it off.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/device/device.h"
#include "core/device/interruption.h"
#include "server/engine/fair_turns.h"
#include "server/engine/slowness.h"

namespace tensord::server {

/// Runs jobs of many clients on one device: those of a client in the order in
/// which they were added, on a stream that the client keeps as long as it has
/// any, and shares when there are many clients.
///
/// Owners share the device's time by their weights, and clients that of their
/// owner: whoever had least, for its weight, is next. Work is counted as
/// predicted when it begins and as measured when it ends.
///
/// Where work is done as soon as it is launched, as on the host, a long job
/// gives way to others every few milliseconds, in the places where it hears
/// that it should; and small jobs run beside it.
/// Elsewhere launching runs ahead of the device, by a bounded number of jobs a
/// client and a bounded time, and a thread completes jobs when the device is
/// done with them, those of a client in order. A job that waits for work of its
/// own while it is being launched lets others launch theirs.
///
/// Where work is done as soon as it is launched, a brief job is launched and
/// completed by the thread that adds it, if it would be the next one.
///
/// A tenant that has as many jobs launched as it may waits for one to end.
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
  /// first. It is asked to stop, and to give way while it is being launched.
  class Job : public core::Interruption {
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

    /// Queues the job's work, or the next part of it. A job that is stopped
    /// ends as soon as it can, with an error.
    virtual Outcome Launch(core::Stream& stream) = 0;
    /// `status` is what Launch() returned or else what the work ended with;
    /// none of it is under way any more.
    virtual void Complete(const absl::Status& status, const Times& times) = 0;

    /// Whether it should be launched when nothing else is under way, as what
    /// takes times should; it is anyway when that takes long. Asked before each
    /// Launch(), on the thread that calls it.
    bool wants_device_alone() const { return wants_device_alone_; }
    /// How long the device should take for all of it.
    absl::Duration predicted() const { return predicted_; }
    /// Whether it takes less time than another thread to wake up for it, all
    /// that Launch() and Complete() do included.
    bool is_brief() const { return is_brief_; }
    /// Who is told after Complete(), and may end the job's life then.
    Listener* listener() const { return listener_; }
    void set_listener(Listener* listener) { listener_ = listener; }

   protected:
    explicit Job(bool wants_device_alone = false)
        : wants_device_alone_(wants_device_alone) {}
    ~Job() override = default;

    /// Before it is added.
    void set_predicted(absl::Duration predicted) { predicted_ = predicted; }
    void set_is_brief(bool is_brief) { is_brief_ = is_brief; }
    /// From within Launch(): of the parts that follow.
    void set_wants_device_alone(bool wants) { wants_device_alone_ = wants; }

   private:
    friend class DeviceWorker;

    void GiveWay() final {
      if (worker_ != nullptr) worker_->GiveWay(*this);
    }
    void Await(const std::shared_ptr<core::Event>& event) final {
      if (worker_ == nullptr || !worker_->Await(*this, event)) {
        Interruption::Await(event);
      }
    }
    void Outlast(const std::shared_ptr<core::Event>& event) final {
      if (worker_ == nullptr || !worker_->Outlast(*this, event)) {
        Interruption::Outlast(event);
      }
    }

    bool wants_device_alone_;
    bool is_brief_ = false;
    absl::Duration predicted_;
    absl::Duration expected_;  // by what was known when it was added
    Listener* listener_ = nullptr;
    // While it is being launched:
    DeviceWorker* worker_ = nullptr;
    uint64_t client_ = 0;
  };

  struct Options {
    int64_t queue_limit = 1024;  // jobs of a client that may wait
    /// Work is done when Launch() returns.
    bool is_synchronous = true;
    /// How long a job that wants the device alone lets others go first.
    absl::Duration patience = absl::Milliseconds(500);
    std::map<std::string, double> weights;  // of owners; 1 if not named
  };

  struct Statistics {
    int64_t queued_count = 0;
    int64_t executed_count = 0;  // launched
    absl::Duration busy;         // time with any job launched and not completed
  };

  using CreateStream =
      std::function<absl::StatusOr<std::unique_ptr<core::Stream>>()>;

  /// `stream` is the first, `create_stream` makes others.
  /// Requires  queue_limit >= 1; weights above 0.
  DeviceWorker(std::unique_ptr<core::Stream> stream, CreateStream create_stream,
               Options options);
  /// Runs what is queued. Nothing may be added any more.
  ~DeviceWorker();

  /// Queues `job` behind the others of `client`; a brief one may have ended
  /// when this returns.
  /// Errors  RESOURCE_EXHAUSTED, reason QUEUE_FULL: queue_limit jobs of this
  ///         client wait already; those of others do not count. Reason
  ///         TENANT_QUOTA_EXCEEDED: as many of its tenant's wait as may.
  absl::Status Add(const ClientId& client, Job* job);

  /// How long it should take until a job of `client` with that prediction has
  /// ended, if it were added now: as long as what waits, or, where that is
  /// less, as what waits of the client's for each of those that share the
  /// device. What runs does not count, as it may be stopped any time. As
  /// measured work of an owner has differed from its predictions, so what is
  /// added afterwards is expected to.
  absl::Duration PredictEnd(const ClientId& client,
                            absl::Duration predicted) const;

  /// True when `job` was still queued, no part of it launched; it will then
  /// never run.
  bool Remove(uint64_t client, Job* job);
  /// Stops `job`, added and not completed: it ends soon. A small one that has
  /// begun is done as a whole.
  void Stop(Job& job);
  /// Stops all jobs, or those of one client.
  void StopAll(std::optional<uint64_t> client = std::nullopt);

  /// Of owners, instead of those in the options.
  void SetWeights(std::map<std::string, double> weights);
  /// Limits of tenants' shares have changed.
  void LimitsChanged();

  const Options& options() const { return options_; }
  Statistics statistics() const;
  /// The jobs of one client.
  struct Load {
    int64_t queued_count = 0;
    int64_t running_count = 0;  // launched, perhaps in part
  };
  /// Of those that have any, by number.
  std::map<uint64_t, Load> loads() const;

 private:
  // Small jobs run beside a turn.
  static constexpr absl::Duration kSmall = absl::Microseconds(200);
  // Turns that are interrupted, each of which keeps a thread.
  static constexpr int kMostParked = 64;
  // What any job counts at least.
  static constexpr absl::Duration kLeast = absl::Microseconds(10);

  struct Launched {
    Job* job;
    uint64_t number;  // counted over all clients
    absl::Status status;
    std::unique_ptr<core::Event> end;  // null: reached
    absl::Time begun;        // the job, of which this may be a later part
    absl::Time since;        // this part
    absl::Duration counted;  // of the owner's time
    absl::Duration ahead;    // that it should take
    bool is_part = false;    // the job goes on
    bool is_alone = false;   // and may have measured: its time says little
    bool is_completing = false;
  };
  /// A stream and how many clients use it.
  struct SharedStream {
    std::unique_ptr<core::Stream> stream;
    int client_count = 0;
    // Its one client is in the middle of a launch.
    bool is_parked = false;
  };
  struct Client {
    uint64_t id = 0;
    std::string owner;
    FairTurns::Member turns;
    std::shared_ptr<QueueShare> share;  // or null
    std::deque<Job*> queued;
    absl::Duration queued_time;  // that those are expected to take
    std::deque<Launched> launched;
    absl::Duration launched_time;    // that those should take
    SharedStream* stream = nullptr;  // null while there is no need of one
    Job* launching = nullptr;        // its stream is in use
    uint64_t launching_number = 0;
    bool is_stalled = false;      // waits for memory; has no turn
    bool has_unfinished = false;  // in front of `queued`, launched in part
    absl::Time unfinished_since;  // its first launch
    // The first job in `queued` lacked memory: it fails when those numbered
    // below have ended and memory still lacks.
    std::optional<uint64_t> lacks_memory_until;
    // Since when the first job waits to have the device alone.
    std::optional<absl::Time> alone_since;
    absl::Time last_ended = absl::InfinitePast();    // of jobs
    absl::Time last_reached = absl::InfinitePast();  // of their parts, too
    // Of what is being launched:
    absl::Time turn_begun;
    absl::Duration ran;      // in turns before
    absl::Duration counted;  // of the owner's time
    bool is_alone = false;   // wanted the device alone when it was launched
    bool is_parked = false;  // its thread waits for another turn
    std::shared_ptr<core::Event> awaited;  // before that; or null
    bool outlasts = false;  // waits for `awaited` though it is stopped
    absl::CondVar resumes;
  };
  using Clients = absl::node_hash_map<uint64_t, Client>;

  void Launch();
  void Complete();
  void GiveWay(Job& job);
  /// False when it may not park.
  bool Await(Job& job, const std::shared_ptr<core::Event>& event);
  /// The same of work that goes on though it is stopped.
  bool Outlast(Job& job, const std::shared_ptr<core::Event>& event);
  /// False when it may not park, or the client shares its stream: what does,
  /// does not launch in the middle of another's launch.
  bool ParkUntil(Client& client, const std::shared_ptr<core::Event>& event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// False when too many wait already, or no thread is left to go on with
  /// others: whoever has the turn keeps it then.
  bool MayPark() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Ends the turn of `client`, and waits for the next one.
  /// Requires  MayPark().
  void Park(Client& client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// It may have a turn.
  void BeginWaiting(Client& client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Who is next, if anybody: to have the turn, or of small jobs alone.
  Client* Next(bool is_small) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Whether the client's first job may be launched now.
  bool MayLaunch(Client& client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Whether a small job may run beside what has the turn.
  bool HasRoomBeside() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  /// Whether a thread should see that the turn, which somebody has, ends; that
  /// of a small job does so by itself.
  bool NeedsWatch() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  /// How long the thread that waits may do so.
  absl::Duration LongestWait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Asks whoever has the turn to give way if that is due.
  void EndTurnIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// The turn of `client` goes on where it stood.
  void Resume(Client& client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Errors  std::system_error when there are no more threads.
  void StartLauncher() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountQueued(Client& client, const Job& job, int change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Counts what is launched and not completed.
  void CountRunning(const Client& client, int change)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// OK when one more of the client's tenant may wait.
  absl::Status CheckShare(const ClientId& client) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  /// Learns how good predictions of the client's work are.
  void Learn(const Client& client, absl::Duration predicted,
             absl::Duration took) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Sets what the work being launched has taken so far.
  void Count(Client& client, absl::Duration ran)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Gives the client a stream unless it has one: one that nobody uses, a new
  /// one, or the one that fewest use.
  absl::Status ProvideStream(Client& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Gives `client` the turn, or a place beside it.
  void Choose(Client& client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Whether the first job of `client`, which has begun to wait, would be next
  /// and is brief.
  bool MayLaunchHere(const Client& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Launches the client's next job, without the lock.
  void LaunchNext(Client& client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Takes that job from the queue.
  Launched BeginNext(Client& client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static Job::Outcome LaunchOn(core::Stream& stream, Launched& launched);
  /// Puts a part's job, or one that lacked memory when the jobs from `oldest`
  /// on were under way, back into the queue; others wait for their end.
  void AfterLaunch(Client& client, Launched launched,
                   const Job::Outcome& outcome, std::optional<uint64_t> oldest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// `client` may have gone.
  void EndTurn(const Client* client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Puts a job back that lacked memory when the jobs from `oldest` to before
  /// its own number were under way; false when it is to fail.
  bool Stall(Client& client, Job* job, std::optional<uint64_t> oldest)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Those that wait for memory may try again.
  void EndStalls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// The least number of those launched and not completed, or being launched by
  /// others than `client`, if any.
  std::optional<uint64_t> OldestUnderWay(const Client* client) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  /// Those of the first jobs of clients, and of jobs being launched, that are
  /// to be waited for.
  struct Awaited {
    uint64_t client;
    core::Event* end;                    // null: reached
    std::shared_ptr<core::Event> event;  // while it is being launched
  };
  std::vector<Awaited> AllAwaited() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  /// What `reached` says is done with, or goes on.
  void Reached(const Awaited& reached) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Completes the first launched job of `client`, without the lock.
  void CompleteFirst(Client& client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseIfIdle(Client& client) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountBusy(int change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CreateStream create_stream_;
  const Options options_;
  mutable absl::Mutex mutex_;
  absl::CondVar can_launch_;
  absl::CondVar has_launched_;
  FairTurns turns_ ABSL_GUARDED_BY(mutex_);
  Clients clients_ ABSL_GUARDED_BY(mutex_);
  // Those with a job that may begin, or go on where it gave way.
  std::vector<Client*> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<Client*> stalled_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<SharedStream>> streams_ ABSL_GUARDED_BY(mutex_);
  // Who has the turn, and whose small job runs beside it.
  Client* turn_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Client* beside_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool is_watched_ ABSL_GUARDED_BY(mutex_) = false;  // a thread sees its end
  int parked_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  // Launched jobs, and those being launched that wait for an event.
  int64_t for_completer_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration queued_time_ ABSL_GUARDED_BY(mutex_);  // of all clients
  Slowness slowness_ ABSL_GUARDED_BY(mutex_);
  int busy_count_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time busy_since_ ABSL_GUARDED_BY(mutex_);
  Statistics statistics_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  int launcher_count_ ABSL_GUARDED_BY(mutex_) = 0;  // that have not ended
  std::vector<std::thread> launchers_ ABSL_GUARDED_BY(mutex_);
  std::thread completer_;
};

}  // namespace tensord::server
