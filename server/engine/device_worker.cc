#include "server/engine/device_worker.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/status.h"
#include "server/engine/quota.h"

namespace tensord::server {
namespace {

// Jobs of one client that are launched before the first of them is done: enough
// to hide what launching costs, and what completing does. Not more than one,
// where they take long: what is launched cannot be taken back.
constexpr int kLaunchAhead = 16;
constexpr absl::Duration kTimeAhead = absl::Milliseconds(10);
constexpr int kMaxStreams = 32;

// How long a job that wants the device alone lets others go first.
constexpr absl::Duration kPatience = absl::Milliseconds(500);

// A turn while others wait: switching between jobs costs little beside it. One
// that takes times lasts longer, as they are of no use if it is interrupted.
constexpr absl::Duration kTurn = absl::Milliseconds(5);
constexpr absl::Duration kTurnAlone = absl::Milliseconds(100);
// Small jobs run beside a turn.
constexpr absl::Duration kSmall = absl::Microseconds(200);
// Predictions that are further off than that say little of others.
constexpr double kMostSlowness = 10;
// What any job counts at least.
constexpr absl::Duration kLeast = absl::Microseconds(10);
// Turns that are interrupted, each of which keeps a thread.
constexpr int kMostParked = 64;

// When it is worth asking again whether there is room in the queue.
constexpr absl::Duration kSoonest = absl::Milliseconds(10);
constexpr absl::Duration kLatest = absl::Seconds(30);

// How long the completer asks without a pause before it takes naps.
constexpr absl::Duration kEager = absl::Microseconds(50);
constexpr absl::Duration kNap = absl::Microseconds(20);

}  // namespace

DeviceWorker::DeviceWorker(std::unique_ptr<core::Stream> stream,
                           CreateStream create_stream, Options options)
    : create_stream_(std::move(create_stream)),
      options_(std::move(options)),
      turns_(options_.weights) {
  absl::MutexLock lock(&mutex_);
  streams_.push_back(std::make_unique<SharedStream>());
  streams_.back()->stream = std::move(stream);
  StartLauncher();
  // Another one sees to it that turns end, and runs small jobs.
  if (options_.is_synchronous) StartLauncher();
  completer_ = std::thread([this] { Complete(); });
}

DeviceWorker::~DeviceWorker() {
  std::vector<std::thread> launchers;
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    can_launch_.SignalAll();
    const auto have_ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return launcher_count_ == 0;
    };
    mutex_.Await(absl::Condition(&have_ended));
    launchers.swap(launchers_);
    has_launched_.Signal();
  }
  for (std::thread& launcher : launchers) launcher.join();
  completer_.join();
}

void DeviceWorker::StartLauncher() {
  ++launcher_count_;
  launchers_.emplace_back([this] { Launch(); });
}

absl::Status DeviceWorker::Add(const ClientId& id, Job* job) {
  absl::MutexLock lock(&mutex_);
  const auto [entry, is_new] = clients_.try_emplace(id.number);
  Client& client = entry->second;
  if (is_new) {
    client.id = id.number;
    client.share = id.share;
    turns_.Join(client.turns, id);
  }
  const absl::Status may_wait = CheckShare(id);
  if (!may_wait.ok()) {
    ReleaseIfIdle(client);
    return may_wait;
  }
  if (std::ssize(client.queued) >= options_.queue_limit) {
    return core::ResourceExhausted(
        "QUEUE_FULL", "the session has ", client.queued.size(),
        " operations in the device's queue, its limit is ",
        options_.queue_limit, "; retry later");
  }
  const bool is_ready = client.queued.empty() && client.launching == nullptr;
  client.queued.push_back(job);
  CountQueued(client, *job, +1);
  if (!is_ready) return absl::OkStatus();
  turns_.Wait(client.turns);
  waiting_.push_back(&client);
  const bool may_run_beside = job->predicted() <= kSmall && HasRoomBeside();
  if (turn_ == nullptr || NeedsWatch() || may_run_beside) can_launch_.Signal();
  return absl::OkStatus();
}

absl::Duration DeviceWorker::PredictEnd(const ClientId& id,
                                        absl::Duration predicted) const {
  absl::MutexLock lock(&mutex_);
  absl::Duration own = predicted;
  auto sharing = static_cast<int64_t>(clients_.size());
  if (const auto entry = clients_.find(id.number); entry == clients_.end()) {
    ++sharing;
  } else {
    own += entry->second.queued_time;
  }
  return slowness_ * std::min(own * sharing, queued_time_ + predicted);
}

bool DeviceWorker::Remove(uint64_t id, Job* job) {
  absl::MutexLock lock(&mutex_);
  const auto entry = clients_.find(id);
  if (entry == clients_.end()) return false;
  Client& client = entry->second;
  const auto at = std::find(client.queued.begin(), client.queued.end(), job);
  if (at == client.queued.end()) return false;
  if (at == client.queued.begin()) {
    if (client.has_unfinished) return false;
    client.lacks_memory_until.reset();
    client.alone_since.reset();
  }
  client.queued.erase(at);
  CountQueued(client, *job, -1);
  if (client.queued.empty()) {
    if (client.launching == nullptr) std::erase(waiting_, &client);
    if (std::exchange(client.is_stalled, false)) std::erase(stalled_, &client);
    ReleaseIfIdle(client);
  }
  can_launch_.Signal();
  return true;
}

void DeviceWorker::Stop(Job& job) {
  absl::MutexLock lock(&mutex_);
  job.Stop();
  if (job.worker_ != nullptr) Resume(clients_.at(job.client_));
}

void DeviceWorker::StopAll(std::optional<uint64_t> only) {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, client] : clients_) {
    if (only && id != *only) continue;
    for (Job* const job : client.queued) job->Stop();
    for (const Launched& launched : client.launched) {
      if (launched.is_part) launched.job->Stop();
    }
    if (client.launching != nullptr) client.launching->Stop();
    Resume(client);
  }
}

void DeviceWorker::SetWeights(std::map<std::string, double> weights) {
  absl::MutexLock lock(&mutex_);
  turns_.SetWeights(std::move(weights));
}

DeviceWorker::Statistics DeviceWorker::statistics() const {
  absl::MutexLock lock(&mutex_);
  Statistics statistics = statistics_;
  if (busy_count_ > 0) statistics.busy += absl::Now() - busy_since_;
  return statistics;
}

std::map<uint64_t, DeviceWorker::Load> DeviceWorker::loads() const {
  absl::MutexLock lock(&mutex_);
  std::map<uint64_t, Load> loads;
  for (const auto& [id, client] : clients_) {
    // What is unfinished is in front of the queue, and its parts are launched.
    const int64_t unfinished = client.has_unfinished ? 1 : 0;
    const int64_t launched =
        std::ranges::count(client.launched, false, &Launched::is_part);
    loads[id] = {.queued_count = std::ssize(client.queued) - unfinished,
                 .running_count = launched + unfinished +
                                  (client.launching != nullptr ? 1 : 0)};
  }
  return loads;
}

void DeviceWorker::LimitsChanged() {
  absl::MutexLock lock(&mutex_);
  can_launch_.SignalAll();
}

absl::Status DeviceWorker::CheckShare(const ClientId& id) const {
  if (id.share == nullptr || id.share->queued < id.share->queued_limit) {
    return absl::OkStatus();
  }
  return QuotaExceeded(
      {.tenant = id.share->tenant,
       .quota = "queued",
       .limit = id.share->queued_limit,
       .used = id.share->queued,
       .retry_after = std::clamp(slowness_ * queued_time_, kSoonest, kLatest)},
      1);
}

void DeviceWorker::CountRunning(const Client& client, int change) {
  CountBusy(change);
  if (client.share != nullptr) client.share->running += change;
}

void DeviceWorker::CountQueued(Client& client, const Job& job, int change) {
  if (client.share != nullptr) client.share->queued += change;
  statistics_.queued_count += change;
  client.queued_time += change * job.predicted();
  queued_time_ += change * job.predicted();
}

void DeviceWorker::Learn(absl::Duration predicted, absl::Duration took) {
  if (predicted <= kSmall) return;  // what that takes is launching
  const double slowness = std::clamp(absl::FDivDuration(took, predicted),
                                     1 / kMostSlowness, kMostSlowness);
  slowness_ += (slowness - slowness_) / 16;
}

void DeviceWorker::CountBusy(int change) {
  if (busy_count_ == 0) busy_since_ = absl::Now();
  busy_count_ += change;
  if (busy_count_ == 0) statistics_.busy += absl::Now() - busy_since_;
}

void DeviceWorker::Launch() {
  absl::MutexLock lock(&mutex_);
  while (true) {
    if (turn_ == nullptr) {
      if (Client* const next = Next(/*is_small=*/false)) {
        turn_ = next;
        turns_.Choose(next->turns);
        std::erase(waiting_, next);
        if (next->is_parked) {
          Resume(*next);
        } else {
          LaunchNext(*next);
        }
        continue;
      }
    } else if (HasRoomBeside()) {
      if (Client* const next = Next(/*is_small=*/true)) {
        beside_ = next;
        std::erase(waiting_, next);
        LaunchNext(*next);
        continue;
      }
    }
    if (closing_ && turn_ == nullptr && waiting_.empty() && stalled_.empty()) {
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
  const absl::Time now = absl::Now();
  if (!client.alone_since) client.alone_since = now;
  return now - *client.alone_since >= kPatience;
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
  return job != nullptr &&
         (job->predicted() > kSmall || absl::Now() - turn_->turn_begun > kTurn);
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
      wait = std::min(wait, *client->alone_since + kPatience - absl::Now());
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
  const absl::Duration turn = absl::Now() - client.turn_begun;
  absl::Duration most = client.is_alone ? kTurnAlone : kTurn;
  // What is nearly done is sooner out of the way than taken up again.
  const absl::Duration left =
      slowness_ * client.launching->predicted() - client.ran;
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
  if (turn_ != &client) return;
  client.ran += absl::Now() - client.turn_begun;
  Count(client, client.ran);
  turn_ = nullptr;
  client.is_parked = true;
  turns_.Wait(client.turns);
  waiting_.push_back(&client);
  // Some thread has to take the turn up, and one has to watch it.
  if (launcher_count_ < ++parked_count_ + 2) StartLauncher();
  can_launch_.Signal();
  while (client.is_parked) client.resumes.Wait(&mutex_);
  --parked_count_;
  client.turn_begun = absl::Now();
}

void DeviceWorker::Resume(Client& client) {
  if (!std::exchange(client.is_parked, false)) return;
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
        return x->client_count < y->client_count;
      });
  // Work that is done at once is in nobody's way.
  const bool is_full =
      !options_.is_synchronous && std::ssize(streams_) == kMaxStreams;
  if ((*least)->client_count == 0 || is_full) {
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
                    .begun = absl::Now(),
                    .counted = absl::ZeroDuration(),
                    .ahead = absl::ZeroDuration()};
  client.launching = job;
  client.launching_number = launched.number;
  client.is_alone = job->wants_device_alone();  // Launch() may change it
  client.turn_begun = launched.begun;
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
  // whole.
  stream.set_interruption(job->predicted() > kSmall ? job : nullptr);
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
    const absl::Duration ran = client.ran + (absl::Now() - client.turn_begun);
    Count(client, ran);
    if (launched.status.ok() && !outcome.is_part) Learn(job->predicted(), ran);
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
  if (!client.queued.empty()) {
    turns_.Wait(client.turns);
    waiting_.push_back(&client);
  }
  const bool is_over = launched.end == nullptr && client.launched.empty();
  // How much of the job a part is, nobody knows.
  launched.ahead = outcome.is_part ? std::min(job->predicted(), kTimeAhead / 4)
                                   : job->predicted();
  client.launched_time += launched.ahead;
  client.launched.push_back(std::move(launched));
  if (is_over) {
    Client* const ended = &client;
    CompleteFirst(client);
    EndTurn(ended);
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
    turns_.Wait(client.turns);
    waiting_.push_back(&client);
  }
  return true;
}

void DeviceWorker::EndStalls() {
  for (Client* const client : stalled_) {
    client->is_stalled = false;
    turns_.Wait(client->turns);
    waiting_.push_back(client);
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

void DeviceWorker::Complete() {
  std::vector<std::pair<uint64_t, core::Event*>> firsts;
  absl::Time asked_in_vain = absl::InfiniteFuture();  // since then
  absl::MutexLock lock(&mutex_);
  while (true) {
    if (for_completer_ == 0) {
      if (closing_ && launcher_count_ == 0) return;
      has_launched_.Wait(&mutex_);
      continue;
    }
    firsts.clear();
    for (const auto& [id, client] : clients_) {
      if (client.launched.empty()) continue;
      const Launched& first = client.launched.front();
      if (!first.is_completing) firsts.emplace_back(id, first.end.get());
    }
    mutex_.Unlock();
    // Nobody else takes them away.
    std::erase_if(firsts, [](const auto& first) {
      return first.second != nullptr && !first.second->IsReached();
    });
    const absl::Time now = absl::Now();
    if (firsts.empty()) {
      asked_in_vain = std::min(asked_in_vain, now);
      if (now - asked_in_vain < kEager) {
        std::this_thread::yield();
      } else {
        absl::SleepFor(kNap);
      }
    } else {
      asked_in_vain = absl::InfiniteFuture();
    }
    mutex_.Lock();
    for (const auto& [id, end] : firsts) {
      CompleteFirst(clients_.at(id));
      --for_completer_;
    }
    // Launchers look for themselves at what those that they complete leave.
    if (!firsts.empty() && !waiting_.empty() && turn_ == nullptr) {
      can_launch_.Signal();
    }
  }
}

void DeviceWorker::CompleteFirst(Client& client) {
  // It stays in its place meanwhile, so that nobody takes its memory to be free
  // before it is.
  Launched& first = client.launched.front();
  first.is_completing = true;
  mutex_.Unlock();
  absl::Status status = first.status;
  if (first.end != nullptr) status.Update(first.end->Wait());
  const Times times{.begun = std::max(first.begun, client.last_ended),
                    .ended = absl::Now()};
  const bool is_part = first.is_part;
  if (!is_part) {
    Listener* const listener = first.job->listener();
    first.job->Complete(status, times);
    if (listener != nullptr) listener->Ended(status);
  }
  mutex_.Lock();
  if (!is_part) client.last_ended = times.ended;
  if (!options_.is_synchronous) {
    const absl::Duration took = times.ended - times.begun;
    turns_.Count(client.turns, std::max(took, kLeast) - first.counted);
    if (status.ok() && !is_part) Learn(first.ahead, took);
  }
  client.launched_time -= first.ahead;
  client.launched.pop_front();
  CountRunning(client, -1);
  EndStalls();
  ReleaseIfIdle(client);
}

void DeviceWorker::ReleaseIfIdle(Client& client) {
  if (!client.queued.empty() || !client.launched.empty() ||
      client.launching != nullptr) {
    return;
  }
  EndTurn(&client);
  if (client.stream != nullptr) --client.stream->client_count;
  turns_.Leave(client.turns);
  clients_.erase(client.id);
}

}  // namespace tensord::server
