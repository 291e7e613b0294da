#include "server/engine/device_worker.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/base/status.h"
#include "core/base/steady_time.h"
#include "server/engine/quota.h"

namespace tensord::server {
namespace {

// When it is worth asking again whether there is room in the queue.
constexpr absl::Duration kSoonest = absl::Milliseconds(10);
constexpr absl::Duration kLatest = absl::Seconds(30);

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
  launchers_.emplace_back([this] { Launch(); });
  ++launcher_count_;
}

bool DeviceWorker::MayPark() {
  if (parked_count_ >= kMostParked) return false;
  // Some thread has to take the turn up, and one has to watch it.
  if (launcher_count_ >= parked_count_ + 3) return true;
  try {
    StartLauncher();
  } catch (const std::system_error&) {
    return false;  // there are no more threads
  }
  return true;
}

absl::Status DeviceWorker::Add(const ClientId& id, Job* job) {
  absl::MutexLock lock(&mutex_);
  const auto [entry, is_new] = clients_.try_emplace(id.number);
  Client& client = entry->second;
  if (is_new) {
    client.id = id.number;
    client.owner = id.owner_name();
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
  job->expected_ = slowness_.Of(client.owner) * job->predicted();
  CountQueued(client, *job, +1);
  if (!is_ready) return absl::OkStatus();
  BeginWaiting(client);
  if (MayLaunchHere(client)) {
    Choose(client);
    LaunchNext(client);  // which may be the client's end
    if (!waiting_.empty()) can_launch_.Signal();
    return absl::OkStatus();
  }
  const bool may_run_beside = job->predicted() <= kSmall && HasRoomBeside();
  if (turn_ == nullptr || NeedsWatch() || may_run_beside) can_launch_.Signal();
  return absl::OkStatus();
}

absl::Duration DeviceWorker::PredictEnd(const ClientId& id,
                                        absl::Duration predicted) const {
  absl::MutexLock lock(&mutex_);
  const absl::Duration expected = slowness_.Of(id.owner_name()) * predicted;
  absl::Duration own = expected;
  auto sharing = static_cast<int64_t>(clients_.size());
  if (const auto entry = clients_.find(id.number); entry == clients_.end()) {
    ++sharing;
  } else {
    own += entry->second.queued_time;
  }
  return std::min(own * sharing, queued_time_ + expected);
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
  if (busy_count_ > 0) statistics.busy += core::SteadyNow() - busy_since_;
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
       .retry_after = std::clamp(queued_time_, kSoonest, kLatest)},
      1);
}

void DeviceWorker::CountRunning(const Client& client, int change) {
  CountBusy(change);
  if (client.share != nullptr) client.share->running += change;
}

void DeviceWorker::CountQueued(Client& client, const Job& job, int change) {
  if (client.share != nullptr) client.share->queued += change;
  statistics_.queued_count += change;
  client.queued_time += change * job.expected_;
  queued_time_ += change * job.expected_;
}

void DeviceWorker::Learn(const Client& client, absl::Duration predicted,
                         absl::Duration took) {
  if (predicted <= kSmall) return;  // what that takes is launching
  slowness_.Learn(client.owner, predicted, took);
}

void DeviceWorker::CountBusy(int change) {
  if (busy_count_ == 0) busy_since_ = core::SteadyNow();
  busy_count_ += change;
  if (busy_count_ == 0) statistics_.busy += core::SteadyNow() - busy_since_;
}

}  // namespace tensord::server
