#include <utility>

#include "absl/time/clock.h"
#include "client/cpp/src/channels.h"
#include "client/cpp/src/convert.h"
#include "tensord/operator.h"
#include "tensord/v1/trace.grpc.pb.h"

namespace tensord {
namespace {

// Of a call, beyond what it records.
constexpr absl::Duration kGrace = absl::Seconds(30);

Activity FromProto(const v1::Activity& message) {
  Activity activity = {.rpc = message.rpc(),
                       .operation = message.operation(),
                       .is_of_stream = message.is_of_stream(),
                       .kernel = message.kernel(),
                       .device = message.device(),
                       .tenant = message.tenant(),
                       .session_number = message.session_number(),
                       .request_id = message.request_id(),
                       .trace_id = message.trace_id(),
                       .code = message.code(),
                       .begun = internal::FromProto(message.begun()),
                       .took = internal::FromProto(message.took())};
  if (message.has_plan()) activity.plan = internal::FromProto(message.plan());
  if (message.has_queue()) {
    activity.queue = internal::FromProto(message.queue());
  }
  if (message.has_kernel_time()) {
    activity.kernel_time = internal::FromProto(message.kernel_time());
  }
  if (message.has_transfer()) {
    activity.transfer = internal::FromProto(message.transfer());
  }
  return activity;
}

}  // namespace

Timeline::Timeline(std::string_view address, const Credentials& credentials)
    : channels_(
          std::make_shared<internal::Channels>(address, kGrace, credentials)) {}

absl::StatusOr<int64_t> Timeline::Record(
    const TimelineOptions& options, const std::function<void()>& begun,
    const std::function<void(const Activity&)>& take) const {
  v1::RecordTimelineRequest request;
  *request.mutable_duration() = internal::ToProto(options.duration);
  request.set_request_id(options.request_id);
  request.set_tenant(options.tenant);
  grpc::ClientContext context;
  channels_->Prepare(context, absl::Now() + options.duration + kGrace);
  const auto stub = v1::TraceService::NewStub(channels_->bulk());
  const auto reader = stub->RecordTimeline(&context, request);
  v1::RecordTimelineResponse response;
  if (reader->Read(&response)) {
    begun();
    do {
      for (const v1::Activity& activity : response.activities()) {
        take(FromProto(activity));
      }
    } while (reader->Read(&response));
  }
  const absl::Status status = channels_->Outcome(reader->Finish(), context);
  if (!status.ok()) return status;
  return response.dropped_count();
}

}  // namespace tensord
