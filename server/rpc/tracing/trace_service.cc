#include "server/rpc/tracing/trace_service.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "core/base/status.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/patience.h"
#include "server/rpc/coroutine/pause.h"

namespace tensord::rpc {
namespace {

constexpr absl::Duration kLongest = absl::Minutes(10);
constexpr absl::Duration kInterval = absl::Milliseconds(100);
constexpr size_t kMostAtATime = 1000;
// Of what is not taken yet, with names and ids of usual length.
constexpr int64_t kMostBytes = server::Timelines::kMostActivities *
                               static_cast<int64_t>(sizeof(server::Activity));

v1::Activity ActivityToProto(const server::Activity& activity) {
  v1::Activity message;
  message.set_rpc(activity.rpc);
  message.set_operation(activity.operation);
  message.set_is_of_stream(activity.is_of_stream);
  message.set_kernel(activity.kernel);
  message.set_device(activity.device);
  message.set_tenant(activity.tenant);
  message.set_session_number(activity.session);
  message.set_request_id(activity.request_id);
  message.set_trace_id(activity.trace.trace_id_text());
  message.set_code(absl::StatusCodeToString(activity.code));
  *message.mutable_begun() = ToProto(activity.begun);
  *message.mutable_took() = ToProto(activity.took);
  const auto set = [&](server::Phase phase, auto field) {
    const auto& time = activity.phases[static_cast<int>(phase)];
    if (time) *(message.*field)() = ToProto(*time);
  };
  set(server::Phase::kPlan, &v1::Activity::mutable_plan);
  set(server::Phase::kQueue, &v1::Activity::mutable_queue);
  set(server::Phase::kKernel, &v1::Activity::mutable_kernel_time);
  set(server::Phase::kTransfer, &v1::Activity::mutable_transfer);
  return message;
}

}  // namespace

void TraceService::ServeOn(LoopGroup& loops) {
  loops.Serve(raw(), "RecordTimeline", *this, &TraceService::Record);
}

Task<absl::Status> TraceService::Record(
    Call& call, const v1::RecordTimelineRequest& request,
    Writer<v1::RecordTimelineResponse> out) {
  const auto duration = FromProto(request.duration(), "duration");
  if (!duration.ok()) co_return duration.status();
  if (*duration <= absl::ZeroDuration() || *duration > kLongest) {
    co_return core::InvalidArgument("DURATION_OUT_OF_RANGE", "duration is ",
                                    absl::FormatDuration(*duration),
                                    ", wanted more than 0s and at most ",
                                    absl::FormatDuration(kLongest));
  }
  call.record().subject = request.request_id().substr(0, 100);
  const auto recording =
      context_.timelines.Record(request.request_id(), request.tenant());
  if (!recording.ok()) co_return recording.status();
  server::HostHold hold;
  const absl::Status held = hold.Take(context_.sessions.host_memory(),
                                      server::HostUse::kRequests, kMostBytes);
  if (!held.ok()) co_return held;
  server::ActivityQueue& activities = (*recording)->activities();
  PatientWriter<v1::RecordTimelineResponse> writer(out, call,
                                                   context_.transfer_idle);
  const absl::Time end = absl::Now() + *duration;
  v1::RecordTimelineResponse response;
  absl::Status sent = co_await writer.Write(response);  // it has begun
  bool is_over = false;
  while (sent.ok() && !is_over) {
    const absl::Duration left = end - absl::Now();
    co_await Pause(call, std::clamp(left, absl::ZeroDuration(), kInterval));
    sent = Door::CheckIdentity(call.record());
    if (!sent.ok()) break;
    // What ends from here on would be taken the next time.
    is_over = left <= kInterval || (*recording)->has_ended() ||
              call.cancelled() || call.loop().refuses();
    std::vector<server::Activity> some;
    do {
      some = activities.Take(kMostAtATime, absl::ZeroDuration());
      response.clear_activities();
      for (const server::Activity& activity : some) {
        *response.add_activities() = ActivityToProto(activity);
      }
      response.set_dropped_count(activities.dropped_count());
      if (!some.empty() || is_over) sent = co_await writer.Write(response);
    } while (sent.ok() && some.size() == kMostAtATime);
  }
  co_return sent;
}

}  // namespace tensord::rpc
