// Which job of whom is launched next, and for how long.
#include <algorithm>
#include <utility>

#include "core/base/status.h"
#include "core/base/steady_time.h"
#include "server/engine/device_worker.h"

namespace tensord::server {
namespace {

// Jobs of one client that are launched before the first of them is done: enough
// to hide what launching costs, and what completing does. Not more than one,
// where they take long: what is launched cannot be taken back.
constexpr int kLaunchAhead = 16;
constexpr absl::Duration kTimeAhead = absl::Milliseconds(10);
constexpr int kMaxStreams = 32;

// A turn while others wait: switching between jobs costs little beside it. One
// that takes times lasts longer, as they are of no use if it is interrupted.
constexpr absl::Duration kTurn = absl::Milliseconds(5);
constexpr absl::Duration kTurnAlone = absl::Milliseconds(100);

}  // namespace

void DeviceWorker::Launch() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    if (turn_ == nullptr) {
      if (Client* const next = Next(/*is_small=*/false)) {
        Choose(*next);
        if (next->is_parked) {
          Resume(*next);
        } else {
          LaunchNext(*next);
        }
        continue;
      }
    } else if (HasRoomBeside()) {
      if (Client* const next = Next(/*is_small=*/true)) {
        Choose(*next);
        LaunchNext(*next);
        continue;
      }
    }
    if (closing_ && turn_ == nullptr && waiting_.empty() && stalled_.empty() &&
        parked_count_ == 0) {
      break;
    }
    EndTurnIfDue();
    const absl::Duration wait = LongestWait();
    if (wait == absl::InfiniteDuration()) {
      can_launch_.Wait(&mutex_);
    } else {
      // One thread watches, the others sleep until they are needed.
      const bool watches = !std::exchange(is_watched_, true);
      if (watches) {
        can_launch_.WaitWithTimeout(&mutex_, wait);
        is_watched_ = false;
      } else {
        can_launch_.Wait(&mutex_);
      }
    }
  }
  --launcher_count_;
  can_launch_.SignalAll();
}

void DeviceWorker::Choose(Client& client) {
  if (turn_ == nullptr) {
    turn_ = &client;
    turns_.Choose(client.turns);
  } else {
    beside_ = &client;
  }
  std::erase(waiting_, &client);
}

bool DeviceWorker::MayLaunchHere(const Client& client) {
  const Job& job = *client.queued.front();
  if (!options_.is_synchronous || !job.is_brief() || job.expected_ > kSmall) {
    return false;
  }
  if (turn_ == nullptr) return Next(/*is_small=*/false) == &client;
  return HasRoomBeside() && Next(/*is_small=*/true) == &client;
}

bool DeviceWorker::MayLaunch(Client& client) {
  if (client.is_parked) return true;
  if (client.share != nullptr &&
      client.share->running >= client.share->running_limit) {
    return false;
  }
  if (!client.launched.empty() &&
      (std::ssize(client.launched) >= kLaunchAhead ||
       client.launched_time >= kTimeAhead)) {
    return false;
  }
  if (!client.queued.front()->wants_device_alone()) return true;
  if (!OldestUnderWay(nullptr)) return true;
  const absl::Time now = core::SteadyNow();
  if (!client.alone_since) client.alone_since = now;
  return now - *client.alone_since >= options_.patience;
}

DeviceWorker::Client* DeviceWorker::Next(bool is_small) {
  Client* best = nullptr;
  for (Client* const client : waiting_) {
    if (is_small &&
        (client->is_parked || client->queued.front()->predicted() > kSmall)) {
      continue;
    }
    if (best != nullptr && !turns_.IsBefore(client->turns, best->turns)) {
      continue;
    }
    if (MayLaunch(*client)) best = client;
  }
  return best;
}

bool DeviceWorker::HasRoomBeside() const {
  if (!options_.is_synchronous || turn_ == nullptr || beside_ != nullptr) {
    return false;
  }
  const Job* const job = turn_->launching;
  return job != nullptr && (job->predicted() > kSmall ||
                            core::SteadyNow() - turn_->turn_begun > kTurn);
}

bool DeviceWorker::NeedsWatch() const {
  const Job* const job = turn_->launching;
  return !is_watched_ && (job == nullptr || job->predicted() > kSmall);
}

absl::Duration DeviceWorker::LongestWait() {
  if (waiting_.empty()) return absl::InfiniteDuration();
  if (turn_ != nullptr) {
    return options_.is_synchronous ? kTurn : absl::InfiniteDuration();
  }
  absl::Duration wait = absl::InfiniteDuration();
  for (const Client* const client : waiting_) {
    if (client->alone_since) {
      wait = std::min(
          wait, *client->alone_since + options_.patience - core::SteadyNow());
    }
  }
  return std::max(wait, absl::Microseconds(100));
}

void DeviceWorker::EndTurnIfDue() {
  if (turn_ == nullptr || waiting_.empty() || !options_.is_synchronous) return;
  Client& client = *turn_;
  // Its thread may be about to take it up, or to end.
  if (client.launching == nullptr || client.is_parked ||
      parked_count_ >= kMostParked) {
    return;
  }
  const absl::Duration turn = core::SteadyNow() - client.turn_begun;
  absl::Duration most = client.is_alone ? kTurnAlone : kTurn;
  // What is nearly done is sooner out of the way than taken up again.
  const absl::Duration left = client.launching->expected_ - client.ran;
  if (left <= 2 * most) most *= 2;
  if (turn < most) return;
  const Client* const next = Next(/*is_small=*/false);
  if (next != nullptr && turns_.IsDue(next->turns, client.turns,
                                      client.ran + turn - client.counted)) {
    client.launching->AskToGiveWay(true);
  }
}

void DeviceWorker::GiveWay(Job& job) {
  absl::MutexLock lock(&mutex_);
  job.AskToGiveWay(false);
  if (job.is_stopped()) return;
  Client& client = clients_.at(job.client_);
  if (turn_ != &client || client.stream->client_count > 1 || !MayPark()) return;
  BeginWaiting(client);
  Park(client);
}

bool DeviceWorker::Await(Job& job, const std::shared_ptr<core::Event>& event) {
  absl::MutexLock lock(&mutex_);
  if (job.is_stopped()) return true;
  return ParkUntil(clients_.at(job.client_), event);
}

bool DeviceWorker::Outlast(Job& job,
                           const std::shared_ptr<core::Event>& event) {
  absl::MutexLock lock(&mutex_);
  job.AskToGiveWay(false);  // it does
  Client& client = clients_.at(job.client_);
  client.outlasts = true;
  const bool has_parked = ParkUntil(client, event);
  client.outlasts = false;
  return has_parked;
}

bool DeviceWorker::ParkUntil(Client& client,
                             const std::shared_ptr<core::Event>& event) {
  if (turn_ != &client || client.stream->client_count > 1 || !MayPark()) {
    return false;
  }
  client.awaited = event;
  ++for_completer_;
  has_launched_.Signal();
  Park(client);
  return true;
}

void DeviceWorker::Park(Client& client) {
  client.ran += core::SteadyNow() - client.turn_begun;
  Count(client, client.ran);
  turn_ = nullptr;
  client.is_parked = client.stream->is_parked = true;
  client.turn_begun = core::SteadyNow();
  ++parked_count_;
  can_launch_.Signal();
  while (client.is_parked) client.resumes.Wait(&mutex_);
  --parked_count_;
  client.stream->is_parked = false;
  client.turn_begun = core::SteadyNow();
}

void DeviceWorker::BeginWaiting(Client& client) {
  turns_.Wait(client.turns);
  waiting_.push_back(&client);
}

void DeviceWorker::Resume(Client& client) {
  if (client.outlasts && client.awaited != nullptr) return;
  if (!std::exchange(client.is_parked, false)) return;
  if (std::exchange(client.awaited, nullptr) != nullptr) --for_completer_;
  std::erase(waiting_, &client);
  client.resumes.Signal();
}

void DeviceWorker::Count(Client& client, absl::Duration ran) {
  ran = std::max(ran, kLeast);
  turns_.Count(client.turns, ran - client.counted);
  client.counted = ran;
}

absl::Status DeviceWorker::ProvideStream(Client& client) {
  if (client.stream != nullptr) return absl::OkStatus();
  const auto least = std::min_element(
      streams_.begin(), streams_.end(), [](const auto& x, const auto& y) {
        return std::pair(x->is_parked, x->client_count) <
               std::pair(y->is_parked, y->client_count);
      });
  // Work that is done at once is in nobody's way.
  const bool is_full =
      !options_.is_synchronous && std::ssize(streams_) >= kMaxStreams;
  if ((*least)->client_count == 0 || (is_full && !(*least)->is_parked)) {
    client.stream = least->get();
  } else {
    auto added = std::make_unique<SharedStream>();
    TENSORD_ASSIGN_OR_RETURN(added->stream, create_stream_());
    client.stream = added.get();
    streams_.push_back(std::move(added));
  }
  ++client.stream->client_count;
  return absl::OkStatus();
}

void DeviceWorker::LaunchNext(Client& client) {
  const std::optional<uint64_t> oldest = OldestUnderWay(&client);
  Launched launched = BeginNext(client);
  mutex_.Unlock();
  Job::Outcome outcome;
  if (client.stream != nullptr) {
    outcome = LaunchOn(*client.stream->stream, launched);
  }
  mutex_.Lock();
  AfterLaunch(client, std::move(launched), outcome, oldest);
}

DeviceWorker::Launched DeviceWorker::BeginNext(Client& client) {
  Job* const job = client.queued.front();
  client.queued.pop_front();
  client.alone_since.reset();
  CountQueued(client, *job, -1);
  ++statistics_.executed_count;
  CountRunning(client, +1);
  Launched launched{.job = job,
                    .number = next_number_++,
                    .status = ProvideStream(client),
                    .end = nullptr,
                    .begun = core::SteadyNow(),
                    .since = {},
                    .counted = absl::ZeroDuration(),
                    .ahead = absl::ZeroDuration()};
  client.launching = job;
  client.launching_number = launched.number;
  client.is_alone = job->wants_device_alone();  // Launch() may change it
  launched.is_alone = client.is_alone;
  client.turn_begun = launched.since = launched.begun;
  client.ran = client.counted = absl::ZeroDuration();
  Count(client, std::min(job->predicted(), kTurn));
  if (std::exchange(client.has_unfinished, false)) {
    launched.begun = client.unfinished_since;
  }
  job->worker_ = this;
  job->client_ = client.id;
  return launched;
}

DeviceWorker::Job::Outcome DeviceWorker::LaunchOn(core::Stream& stream,
                                                  Launched& launched) {
  Job* const job = launched.job;
  // What is small is done before it could be stopped, and leaves its results
  // whole. Taking times is not.
  const bool is_small =
      job->predicted() <= kSmall && !job->wants_device_alone();
  stream.set_interruption(is_small ? nullptr : job);
  Job::Outcome outcome = job->Launch(stream);
  stream.set_interruption(nullptr);
  launched.status = outcome.status;
  // Also after a failure: what was queued before it may use the same memory.
  absl::StatusOr<std::unique_ptr<core::Event>> end = stream.Record();
  if (end.ok()) {
    launched.end = *std::move(end);
  } else {
    launched.status.Update(end.status());
    stream.Synchronize().IgnoreError();
  }
  return outcome;
}

void DeviceWorker::AfterLaunch(Client& client, Launched launched,
                               const Job::Outcome& outcome,
                               std::optional<uint64_t> oldest) {
  Job* const job = launched.job;
  job->worker_ = nullptr;
  job->AskToGiveWay(false);
  client.launching = nullptr;
  if (options_.is_synchronous) {
    const absl::Duration ran =
        client.ran + (core::SteadyNow() - client.turn_begun);
    Count(client, ran);
    if (launched.status.ok() && !outcome.is_part && !launched.is_alone) {
      Learn(client, job->predicted(), ran);
    }
  }
  launched.counted = client.counted;
  if (absl::IsResourceExhausted(launched.status) && outcome.may_be_repeated &&
      Stall(client, job, oldest)) {
    CountRunning(client, -1);
    --statistics_.executed_count;
    EndTurn(&client);
    return;
  }
  client.lacks_memory_until.reset();
  if (launched.status.ok() && outcome.is_part) {
    launched.is_part = client.has_unfinished = true;
    client.unfinished_since = launched.begun;
    client.queued.push_front(job);
    CountQueued(client, *job, +1);
    --statistics_.executed_count;
  }
  if (!client.queued.empty()) BeginWaiting(client);
  const bool is_over = launched.end == nullptr && client.launched.empty();
  // How much of the job a part is, nobody knows.
  launched.ahead = outcome.is_part ? std::min(job->predicted(), kTimeAhead / 4)
                                   : job->predicted();
  client.launched_time += launched.ahead;
  client.launched.push_back(std::move(launched));
  if (is_over) {
    // The client may have a turn of its own by then, or be gone.
    const Client* const ended = &client;
    const bool has_turn = turn_ == ended;
    const bool is_beside = beside_ == ended;
    CompleteFirst(client);
    if (has_turn && turn_ == ended) turn_ = nullptr;
    if (is_beside && beside_ == ended) beside_ = nullptr;
  } else {
    ++for_completer_;
    has_launched_.Signal();
    EndTurn(&client);
  }
}

void DeviceWorker::EndTurn(const Client* client) {
  if (turn_ == client) turn_ = nullptr;
  if (beside_ == client) beside_ = nullptr;
}

bool DeviceWorker::Stall(Client& client, Job* job,
                         std::optional<uint64_t> oldest) {
  if (!client.lacks_memory_until) {
    client.lacks_memory_until = client.launching_number;
  }
  if (!oldest || *oldest >= *client.lacks_memory_until) return false;
  client.queued.push_front(job);
  CountQueued(client, *job, +1);
  if (OldestUnderWay(&client) == oldest) {
    client.is_stalled = true;
    stalled_.push_back(&client);
  } else {  // Some have ended meanwhile.
    BeginWaiting(client);
  }
  return true;
}

void DeviceWorker::EndStalls() {
  for (Client* const client : stalled_) {
    client->is_stalled = false;
    BeginWaiting(*client);
  }
  stalled_.clear();
}

std::optional<uint64_t> DeviceWorker::OldestUnderWay(
    const Client* except) const {
  std::optional<uint64_t> oldest;
  const auto count = [&](uint64_t number) {
    oldest = std::min(oldest.value_or(number), number);
  };
  for (const auto& [id, client] : clients_) {
    if (!client.launched.empty()) count(client.launched.front().number);
    if (client.launching != nullptr && &client != except) {
      count(client.launching_number);
    }
  }
  return oldest;
}

}  // namespace tensord::server
