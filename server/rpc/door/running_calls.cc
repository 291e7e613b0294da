#include "server/rpc/door/running_calls.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "core/base/status.h"
#include "server/rpc/coroutine/idle_watch.h"

namespace tensord::rpc {

/// On its way to a call's Loop, where it finds the call or that it has ended.
class RunningCalls::Stopping final : public Tag {
 public:
  Stopping(const RunningCalls& calls, Call& call, uint64_t number,
           absl::Status why, bool is_session_end)
      : calls_(calls),
        call_(&call),
        number_(number),
        why_(std::move(why)),
        is_session_end_(is_session_end) {}

  /// Has Fire() called soon, which deletes it.
  void Send() { call_->loop().Post(this); }

 private:
  void Fire(bool) override {
    const std::unique_ptr<Stopping> self(this);
    if (!calls_.Has(*call_, number_)) return;
    if (is_session_end_ && call_->EndWithSession(why_)) return;
    if (call_->record().rpc->is_stream) {
      call_->BreakOff(why_);
    } else {
      call_->Stop(why_);
    }
  }

  const RunningCalls& calls_;
  Call* const call_;
  const uint64_t number_;
  const absl::Status why_;
  const bool is_session_end_;
};

void RunningCalls::Add(Call& call,
                       std::shared_ptr<const server::Session> session) {
  absl::MutexLock lock(&mutex_);
  const auto [entry, is_new] = calls_.try_emplace(&call);
  Running& running = entry->second;
  if (is_new) running.number = next_number_++;
  if (running.session == nullptr) running.session = std::move(session);
}

void RunningCalls::Remove(Call& call) {
  Running removed;  // its session may go with it
  absl::MutexLock lock(&mutex_);
  const auto found = calls_.find(&call);
  if (found == calls_.end()) return;
  removed = std::move(found->second);
  calls_.erase(found);
}

bool RunningCalls::Has(Call& call, uint64_t number) const {
  absl::MutexLock lock(&mutex_);
  const auto found = calls_.find(&call);
  return found != calls_.end() && found->second.number == number;
}

std::vector<RunningCalls::Shown> RunningCalls::List(
    std::optional<uint64_t> session) const {
  const auto now = std::chrono::steady_clock::now();
  std::vector<Shown> shown;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [call, running] : calls_) {
      if (running.session == nullptr) continue;
      if (session && running.session->number() != *session) continue;
      const CallRecord& record = call->record();
      shown.push_back({.request_id = record.request_id,
                       .rpc = record.rpc->name,
                       .session = running.session->number(),
                       .tenant = running.session->options().tenant,
                       .elapsed = absl::FromChrono(now - record.begun)});
    }
  }
  std::ranges::sort(shown, std::ranges::greater(), &Shown::elapsed);
  return shown;
}

std::set<uint64_t> RunningCalls::SessionsOf(
    absl::string_view request_id) const {
  std::set<uint64_t> sessions;
  absl::MutexLock lock(&mutex_);
  for (const auto& [call, running] : calls_) {
    if (running.session != nullptr && call->record().request_id == request_id) {
      sessions.insert(running.session->number());
    }
  }
  return sessions;
}

int64_t RunningCalls::StopRequest(absl::string_view request_id,
                                  const absl::Status& why) {
  return Stop(
      [request_id](const CallRecord& record, const Running& running) {
        return running.session != nullptr && record.request_id == request_id;
      },
      why);
}

int64_t RunningCalls::StopSession(uint64_t session, const absl::Status& why) {
  return Stop(
      [session](const CallRecord&, const Running& running) {
        return running.session != nullptr &&
               running.session->number() == session;
      },
      why);
}

int64_t RunningCalls::StopStreams(const server::Session& session) {
  return Stop(
      [&session](const CallRecord& record, const Running& running) {
        return record.rpc->is_stream && running.session.get() == &session;
      },
      core::NotFound("SESSION_NOT_FOUND", "the session has ended"),
      /*is_session_end=*/true);
}

int64_t RunningCalls::StopUnknown(const absl::Status& why) {
  return Stop([](const CallRecord& record,
                 const Running&) { return !record.identity->IsValid(); },
              why);
}

int64_t RunningCalls::Stop(
    absl::FunctionRef<bool(const CallRecord&, const Running&)> is_meant,
    const absl::Status& why, bool is_session_end) {
  int64_t count = 0;
  absl::MutexLock lock(&mutex_);  // while it is held, no call ends
  for (const auto& [call, running] : calls_) {
    if (!is_meant(call->record(), running)) continue;
    (new Stopping(*this, *call, running.number, why, is_session_end))->Send();
    ++count;
  }
  return count;
}

}  // namespace tensord::rpc
