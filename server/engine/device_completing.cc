// What happens to jobs when the device is done with them.
#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/steady_time.h"
#include "server/engine/device_worker.h"

namespace tensord::server {
namespace {

// How long the completer asks without a pause before it takes naps.
constexpr absl::Duration kEager = absl::Microseconds(50);
constexpr absl::Duration kNap = absl::Microseconds(20);
constexpr absl::Duration kLongestNap = absl::Milliseconds(1);

}  // namespace

void DeviceWorker::Complete() {
  absl::Time asked_in_vain = absl::InfiniteFuture();  // since then
  absl::MutexLock lock(&mutex_);
  while (true) {
    if (for_completer_ == 0) {
      if (closing_ && launcher_count_ == 0) return;
      has_launched_.Wait(&mutex_);
      continue;
    }
    std::vector<Awaited> awaited = AllAwaited();
    mutex_.Unlock();
    // Nobody else takes them away.
    std::erase_if(awaited, [](const Awaited& one) {
      return one.end != nullptr && !one.end->IsReached();
    });
    const absl::Time now = core::SteadyNow();
    if (awaited.empty()) {
      asked_in_vain = std::min(asked_in_vain, now);
      if (now - asked_in_vain < kEager) {
        std::this_thread::yield();
      } else {
        absl::SleepFor(
            std::clamp((now - asked_in_vain) / 50, kNap, kLongestNap));
      }
    } else {
      asked_in_vain = absl::InfiniteFuture();
    }
    mutex_.Lock();
    for (const Awaited& reached : awaited) Reached(reached);
    // Launchers look for themselves at what those that they complete leave.
    if (!awaited.empty() && !waiting_.empty() && turn_ == nullptr) {
      can_launch_.Signal();
    }
  }
}

std::vector<DeviceWorker::Awaited> DeviceWorker::AllAwaited() const {
  std::vector<Awaited> all;
  for (const auto& [id, client] : clients_) {
    if (client.awaited != nullptr) {
      all.push_back({id, client.awaited.get(), client.awaited});
    }
    if (client.launched.empty()) continue;
    const Launched& first = client.launched.front();
    if (!first.is_completing) all.push_back({id, first.end.get(), nullptr});
  }
  return all;
}

void DeviceWorker::Reached(const Awaited& reached) {
  if (reached.event == nullptr) {
    CompleteFirst(clients_.at(reached.client));
    --for_completer_;
    return;
  }
  // It may have been stopped meanwhile.
  const auto client = clients_.find(reached.client);
  if (client == clients_.end() || client->second.awaited != reached.event) {
    return;
  }
  Client& goes_on = client->second;
  goes_on.awaited = nullptr;
  --for_completer_;
  goes_on.ran += core::SteadyNow() - goes_on.turn_begun;
  Count(goes_on, goes_on.ran);
  BeginWaiting(goes_on);
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
                    .ended = core::SteadyNow()};
  const absl::Time since = std::max(first.since, client.last_reached);
  const bool is_part = first.is_part;
  if (!is_part) {
    Listener* const listener = first.job->listener();
    first.job->Complete(status, times);
    if (listener != nullptr) listener->Ended(status);
  }
  mutex_.Lock();
  if (!is_part) client.last_ended = times.ended;
  client.last_reached = times.ended;
  if (!options_.is_synchronous) {
    const absl::Duration took = times.ended - since;
    turns_.Count(client.turns, std::max(took, kLeast) - first.counted);
    if (status.ok() && !is_part && !first.is_alone) {
      Learn(client, first.ahead, times.ended - times.begun);
    }
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
