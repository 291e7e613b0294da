#include "server/engine/device_worker.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

// Jobs of one client that are launched before the first of them is done: enough
// to hide what launching costs, and what completing does.
constexpr int kLaunchAhead = 16;
constexpr int kMaxStreams = 32;

// How long all wait for a job that wants the device alone.
constexpr absl::Duration kPatience = absl::Milliseconds(500);

// How long the completer asks without a pause before it takes naps.
constexpr absl::Duration kEager = absl::Microseconds(50);
constexpr absl::Duration kNap = absl::Microseconds(20);

}  // namespace

DeviceWorker::DeviceWorker(std::unique_ptr<core::Stream> stream,
                           CreateStream create_stream, int64_t queue_limit)
    : create_stream_(std::move(create_stream)), queue_limit_(queue_limit) {
  streams_.push_back(std::make_unique<SharedStream>());
  streams_.back()->stream = std::move(stream);
  launcher_ = std::thread([this] { Launch(); });
  completer_ = std::thread([this] { Complete(); });
}

DeviceWorker::~DeviceWorker() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    can_launch_.Signal();
  }
  launcher_.join();
  completer_.join();
}

absl::Status DeviceWorker::Add(uint64_t id, Job* job) {
  absl::MutexLock lock(&mutex_);
  Client& client = clients_[id];
  if (std::ssize(client.queued) >= queue_limit_) {
    return core::ResourceExhausted(
        "QUEUE_FULL", "the session has ", client.queued.size(),
        " operations in the device's queue, its limit is ", queue_limit_,
        "; retry later");
  }
  if (client.queued.empty() && !client.is_launching) turns_.push_back(id);
  client.queued.push_back(job);
  ++statistics_.queued_count;
  can_launch_.Signal();
  return absl::OkStatus();
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
  }
  client.queued.erase(at);
  --statistics_.queued_count;
  if (client.queued.empty()) {
    std::erase(turns_, id);
    if (std::exchange(client.is_stalled, false)) std::erase(stalled_, id);
    ReleaseIfIdle(id, client);
  }
  can_launch_.Signal();
  return true;
}

DeviceWorker::Statistics DeviceWorker::statistics() const {
  absl::MutexLock lock(&mutex_);
  Statistics statistics = statistics_;
  if (busy_count_ > 0) statistics.busy += absl::Now() - busy_since_;
  return statistics;
}

void DeviceWorker::CountBusy(int change) {
  if (busy_count_ == 0) busy_since_ = absl::Now();
  busy_count_ += change;
  if (busy_count_ == 0) statistics_.busy += absl::Now() - busy_since_;
}

void DeviceWorker::Launch() {
  std::optional<absl::Time> patience_ends;  // of whom waits to be alone
  absl::MutexLock lock(&mutex_);
  while (true) {
    const auto turn =
        std::find_if(turns_.begin(), turns_.end(), [this](uint64_t id) {
          return std::ssize(clients_.at(id).launched) < kLaunchAhead;
        });
    if (turn != turns_.end() &&
        clients_.at(*turn).queued.front()->wants_device_alone() &&
        OldestLaunched()) {
      // Nobody overtakes it, so that it will be; but others do not wait long.
      const absl::Time now = absl::Now();
      if (!patience_ends) patience_ends = now + kPatience;
      if (now < *patience_ends) {
        can_launch_.WaitWithTimeout(&mutex_, *patience_ends - now);
        continue;
      }
    }
    if (turn != turns_.end()) {
      patience_ends.reset();
      const uint64_t id = *turn;
      turns_.erase(turn);
      LaunchNext(id, clients_.at(id));
      continue;
    }
    if (closing_ && turns_.empty() && stalled_.empty()) break;
    can_launch_.Wait(&mutex_);
  }
  launches_ended_ = true;
  has_launched_.Signal();
}

absl::Status DeviceWorker::ProvideStream(Client& client) {
  if (client.stream != nullptr) return absl::OkStatus();
  const auto least = std::min_element(
      streams_.begin(), streams_.end(), [](const auto& x, const auto& y) {
        return x->client_count < y->client_count;
      });
  if ((*least)->client_count == 0 || std::ssize(streams_) == kMaxStreams) {
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

void DeviceWorker::LaunchNext(uint64_t id, Client& client) {
  Job* const job = client.queued.front();
  client.queued.pop_front();
  --statistics_.queued_count;
  ++statistics_.executed_count;
  client.is_launching = true;
  CountBusy(+1);
  const std::optional<uint64_t> oldest = OldestLaunched();
  const uint64_t next = next_number_;
  Launched launched{.job = job,
                    .number = 0,
                    .status = ProvideStream(client),
                    .end = nullptr,
                    .begun = absl::Now()};
  if (std::exchange(client.has_unfinished, false)) {
    launched.begun = client.unfinished_since;
  }
  mutex_.Unlock();
  Job::Outcome outcome;
  if (client.stream != nullptr) {
    core::Stream& stream = *client.stream->stream;
    outcome = job->Launch(stream);
    launched.status = outcome.status;
    // Also after a failure: what was queued before it may use the same memory.
    absl::StatusOr<std::unique_ptr<core::Event>> end = stream.Record();
    if (end.ok()) {
      launched.end = *std::move(end);
    } else {
      launched.status.Update(end.status());
      stream.Synchronize().IgnoreError();
    }
  }
  mutex_.Lock();
  client.is_launching = false;
  if (absl::IsResourceExhausted(launched.status) && outcome.may_be_repeated &&
      Stall(id, client, job, oldest, next)) {
    CountBusy(-1);
    --statistics_.executed_count;
    return;
  }
  client.lacks_memory_until.reset();
  if (launched.status.ok() && outcome.is_part) {
    launched.is_part = client.has_unfinished = true;
    client.unfinished_since = launched.begun;
    client.queued.push_front(job);
    ++statistics_.queued_count;
    --statistics_.executed_count;
  }
  if (!client.queued.empty()) turns_.push_back(id);
  launched.number = next_number_++;
  const bool is_over = launched.end == nullptr && client.launched.empty();
  client.launched.push_back(std::move(launched));
  if (is_over) {
    CompleteFirst(id, client);
  } else {
    ++for_completer_;
    has_launched_.Signal();
  }
}

bool DeviceWorker::Stall(uint64_t id, Client& client, Job* job,
                         std::optional<uint64_t> oldest, uint64_t next) {
  if (!client.lacks_memory_until) client.lacks_memory_until = next;
  if (!oldest || *oldest >= *client.lacks_memory_until) return false;
  client.queued.push_front(job);
  ++statistics_.queued_count;
  if (OldestLaunched() == oldest) {
    client.is_stalled = true;
    stalled_.push_back(id);
  } else {  // Some have ended meanwhile.
    turns_.push_back(id);
  }
  return true;
}

void DeviceWorker::EndStalls() {
  for (const uint64_t id : stalled_) {
    clients_.at(id).is_stalled = false;
    turns_.push_back(id);
  }
  stalled_.clear();
}

std::optional<uint64_t> DeviceWorker::OldestLaunched() const {
  std::optional<uint64_t> oldest;
  for (const auto& [id, client] : clients_) {
    if (client.launched.empty()) continue;
    const uint64_t number = client.launched.front().number;
    oldest = std::min(oldest.value_or(number), number);
  }
  return oldest;
}

void DeviceWorker::Complete() {
  std::vector<std::pair<uint64_t, core::Event*>> firsts;
  absl::Time asked_in_vain = absl::InfiniteFuture();  // since then
  absl::MutexLock lock(&mutex_);
  while (true) {
    if (for_completer_ == 0) {
      if (launches_ended_) return;
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
      CompleteFirst(id, clients_.at(id));
      --for_completer_;
    }
  }
}

void DeviceWorker::CompleteFirst(uint64_t id, Client& client) {
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
  client.launched.pop_front();
  CountBusy(-1);
  EndStalls();
  ReleaseIfIdle(id, client);
  can_launch_.Signal();
}

void DeviceWorker::ReleaseIfIdle(uint64_t id, Client& client) {
  if (!client.queued.empty() || !client.launched.empty() ||
      client.is_launching) {
    return;
  }
  if (client.stream != nullptr) --client.stream->client_count;
  clients_.erase(id);
}

}  // namespace tensord::server
