#include "client/load/load.h"

#include <sys/prctl.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/load/schedule.h"

namespace tensord::load {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(20);
constexpr absl::Duration kInterval = absl::Seconds(1);
/// What calls have to end in once the load is interrupted or closed.
constexpr absl::Duration kGrace = absl::Seconds(2);
/// Callers of a closed loop wait so long after an error. Else they would do
/// nothing but fail against a server that refuses them at once.
constexpr absl::Duration kAfterError = absl::Milliseconds(10);
/// A lease outlives a process that was killed. Whoever loads servers to see
/// whether they hold does not want to wait long for that.
constexpr absl::Duration kLease = absl::Seconds(30);

std::vector<double> WeightsOf(const Mix& mix) {
  std::vector<double> weights;
  for (const OperationSpec& each : mix.operations) {
    weights.push_back(each.weight);
  }
  return weights;
}

absl::Status Annotate(const absl::Status& status, const std::string& what) {
  absl::Status annotated(status.code(),
                         absl::StrCat(what, ": ", status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace

Load::Load(const LoadOptions& options, const Mix& mix,
           std::vector<absl::Duration> good_within)
    : options_(options),
      mix_(mix),
      statistics_(options.measured, std::move(good_within)),
      workers_(options.rate_per_s > 0 ? options.most_under_way
                                      : options.closed) {}

absl::StatusOr<std::unique_ptr<Load>> Load::Prepare(
    const LoadOptions& options, const Mix& mix,
    std::vector<absl::Duration> good_within) {
  std::unique_ptr<Load> load(new Load(options, mix, std::move(good_within)));
  const absl::Status status = load->Open();
  if (!status.ok()) return status;
  return load;
}

absl::Status Load::Open() {
  for (const OperationSpec& each : mix_.operations) {
    contents_.push_back(each.weight > 0 ? RandomContents(each)
                                        : TensorContents());
  }
  SessionOptions session_options;
  session_options.job = options_.job;
  session_options.device = options_.device;
  session_options.credentials = options_.credentials;
  session_options.deadline = options_.timeout;
  session_options.lease = kLease;
  for (int i = 0; i < options_.sessions; ++i) {
    absl::StatusOr<Session> session =
        Session::Connect(options_.address, session_options);
    if (!session.ok()) {
      return Annotate(
          session.status(),
          absl::StrCat("opening session ", i + 1, " of ", options_.sessions));
    }
    sessions_.push_back(*std::move(session));
  }
  const absl::StatusOr<ServerInfo> info = sessions_.front().Info();
  if (!info.ok()) return info.status();
  server_version_ = info->version;
  for (Session& session : sessions_) {
    std::vector<std::unique_ptr<Operation>>& operations =
        operations_.emplace_back();
    for (size_t i = 0; i < mix_.operations.size(); ++i) {
      const OperationSpec& spec = mix_.operations[i];
      operations.emplace_back();
      if (spec.weight == 0) continue;
      absl::StatusOr<std::unique_ptr<Operation>> prepared =
          Operation::Prepare(session, spec, contents_[i]);
      absl::Status status = prepared.status();
      if (status.ok() && operations_.size() == 1) status = (*prepared)->Check();
      if (!status.ok()) {
        return Annotate(status, absl::StrCat("operation '", spec.name, "'"));
      }
      operations.back() = *std::move(prepared);
    }
  }
  for (size_t i = 0; i < contents_.size(); ++i) {
    if (!IsSentByCalls(mix_.operations[i])) contents_[i].clear();
  }
  return absl::OkStatus();
}

LoadResult Load::Run(
    const std::function<bool()>& is_interrupted,
    const std::function<void(const IntervalRow&)>& on_interval) {
  start_ = Clock::now() + absl::ToChronoNanoseconds(options_.warm_up);
  std::thread sender;
  if (options_.rate_per_s > 0) {
    sender = std::thread([this] { SendOnSchedule(); });
  } else {
    StartCallers();
  }
  LoadResult result{.counts = {}, .measured = options_.measured};
  absl::Duration next = kInterval - absl::Ceil(options_.warm_up, kInterval);
  const auto look = [&] {
    const absl::Duration now = Now();
    if (now >= next) {
      on_interval({now, statistics_.TakeInterval()});
      next += kInterval;
    }
    if (result.is_interrupted || !is_interrupted()) return;
    result.is_interrupted = true;
    if (!stopping_.HasBeenNotified()) stopping_.Notify();
    result.measured = std::clamp(now, absl::ZeroDuration(), options_.measured);
    statistics_.CutShort(result.measured);
  };
  while (!result.is_interrupted && Now() < options_.measured) {
    stopping_.WaitForNotificationWithTimeout(
        std::min(kLook, options_.measured - Now()));
    look();
  }
  if (sender.joinable()) sender.join();
  if (!stopping_.HasBeenNotified()) stopping_.Notify();
  absl::Duration until = absl::InfiniteDuration();
  while (!workers_.AwaitIdle(kLook) && Now() < until) {
    look();
    if (result.is_interrupted) until = std::min(until, Now() + kGrace);
  }
  const Interval rest = statistics_.TakeInterval();
  if (rest.ok + rest.failed + rest.not_sent > 0) on_interval({Now(), rest});
  result.counts = statistics_.counts();
  return result;
}

bool Load::Close() {
  if (workers_.AwaitIdle(absl::ZeroDuration())) {
    // Before the tensors go, which are not deleted one by one then.
    for (Session& session : sessions_) (void)session.Close();
    return true;
  }
  // On threads of their own: a server that hangs holds them up, too.
  for (Session& session : sessions_) {
    std::thread([&session] { (void)session.Close(); }).detach();
  }
  return workers_.AwaitIdle(kGrace);
}

void Load::StartCallers() {
  for (int caller = 0; caller < options_.closed; ++caller) {
    workers_.TryRun([this, caller] {
      OperationChoice choice(WeightsOf(mix_), options_.seed + caller);
      const int session = caller % options_.sessions;
      while (!stopping_.HasBeenNotified()) {
        const absl::Duration now = Now();
        if (now >= options_.measured) return;
        Call(choice.Next(), session, now);
      }
    });
  }
}

void Load::SendOnSchedule() {
  prctl(PR_SET_TIMERSLACK, 1000);  // nanoseconds; it is 50 times that
  PoissonSchedule schedule(options_.rate_per_s, -options_.warm_up,
                           options_.seed);
  OperationChoice choice(WeightsOf(mix_), options_.seed);
  for (int64_t i = 0;; ++i) {
    const absl::Duration intended = schedule.Next();
    if (intended >= options_.measured) return;
    const absl::Duration wait = intended - Now();
    if (wait > absl::ZeroDuration()) {
      stopping_.WaitForNotificationWithTimeout(wait);
    }
    if (stopping_.HasBeenNotified()) return;
    const int operation = choice.Next();
    const int session = static_cast<int>(i % options_.sessions);
    const bool is_given = workers_.TryRun([this, operation, session, intended] {
      Call(operation, session, intended);
    });
    if (!is_given) statistics_.NoteNotSent(operation, intended);
  }
}

void Load::Call(int operation, int session, absl::Duration intended) {
  statistics_.NoteSent(operation, intended);
  CallTimes times{.intended = intended, .sent = Now()};
  const CallResult result = operations_[session][operation]->Call();
  times.ended = Now();
  statistics_.NoteEnded(operation, times, result.outcome);
  if (!result.outcome.status.ok() && options_.rate_per_s == 0) {
    stopping_.WaitForNotificationWithTimeout(kAfterError);
  }
}

}  // namespace tensord::load
