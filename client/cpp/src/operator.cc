#include "tensord/operator.h"

#include <algorithm>

#include "client/cpp/src/channels.h"
#include "client/cpp/src/convert.h"

namespace tensord {

using internal::Channels;
using internal::FromProto;
using Admin = v1::AdminService::Stub;

namespace {

constexpr int64_t kPage = 1000;  // the most that servers send

SessionState FromProto(const v1::SessionState& session) {
  return {.number = session.number(),
          .tenant = session.tenant(),
          .job = session.job(),
          .peer = session.peer(),
          .device = session.device(),
          .priority = session.priority(),
          .age = internal::FromProto(session.age()),
          .idle = internal::FromProto(session.idle()),
          .lease = internal::FromProto(session.lease()),
          .lease_left = internal::FromProto(session.lease_left()),
          .tensor_count = session.tensor_count(),
          .memory_used_bytes = session.memory_used_bytes(),
          .memory_quota_bytes = session.memory_quota_bytes(),
          .queued_operations = session.queued_operations(),
          .running_operations = session.running_operations()};
}

LargeTensor FromProto(const v1::LargeTensor& tensor) {
  return {.id = tensor.id(),
          .session_number = tensor.session_number(),
          .tenant = tensor.tenant(),
          .device = tensor.device(),
          .element_type = static_cast<ElementType>(tensor.element_type()),
          .extents = {tensor.extents().begin(), tensor.extents().end()},
          .bytes = tensor.bytes(),
          .is_view = tensor.is_view(),
          .state = static_cast<TensorState>(tensor.state())};
}

Evicted FromProto(const v1::EvictSessionsResponse& response) {
  return {.session_numbers = {response.session_numbers().begin(),
                              response.session_numbers().end()},
          .memory_bytes = response.memory_bytes()};
}

}  // namespace

Operator::Operator(std::string_view address, absl::Duration deadline,
                   const Credentials& credentials)
    : channels_(std::make_shared<Channels>(address, deadline, credentials)) {}

absl::StatusOr<ServerStats> Operator::Stats() const {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::GetServerStatsResponse response,
      channels_->Call(channels_->admin, &Admin::GetServerStats,
                      v1::GetServerStatsRequest()));
  return internal::FromProto(response);
}

absl::StatusOr<std::vector<SessionState>> Operator::Sessions(
    std::string_view tenant) const {
  v1::ListSessionsRequest request;
  request.set_tenant(std::string(tenant));
  std::vector<SessionState> sessions;
  do {
    TENSORD_CLIENT_ASSIGN_OR_RETURN(
        v1::ListSessionsResponse response,
        channels_->Call(channels_->admin, &Admin::ListSessions, request));
    for (const auto& session : response.sessions()) {
      sessions.push_back(FromProto(session));
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return sessions;
}

absl::StatusOr<std::vector<SessionState>> Operator::LargestSessions(
    int most) const {
  v1::ListSessionsRequest request;
  request.set_largest_first(true);
  request.set_page_size(most);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::ListSessionsResponse response,
      channels_->Call(channels_->admin, &Admin::ListSessions, request));
  std::vector<SessionState> sessions;
  for (const auto& session : response.sessions()) {
    sessions.push_back(FromProto(session));
  }
  return sessions;
}

absl::StatusOr<std::vector<RunningCall>> Operator::Operations(
    std::optional<int64_t> session_number) const {
  v1::ListOperationsRequest request;
  request.set_session_number(session_number.value_or(0));
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::ListOperationsResponse response,
      channels_->Call(channels_->admin, &Admin::ListOperations, request));
  std::vector<RunningCall> calls;
  for (const v1::RunningCall& call : response.operations()) {
    calls.push_back({.request_id = call.request_id(),
                     .rpc = call.rpc(),
                     .session_number = call.session_number(),
                     .tenant = call.tenant(),
                     .elapsed = internal::FromProto(call.elapsed())});
  }
  return calls;
}

absl::StatusOr<std::vector<LargeTensor>> Operator::Tensors(
    int64_t most, std::optional<int64_t> session_number) const {
  v1::ListLargestTensorsRequest request;
  request.set_session_number(session_number.value_or(0));
  std::vector<LargeTensor> tensors;
  do {
    request.set_page_size(static_cast<int32_t>(
        std::min(kPage, most - static_cast<int64_t>(tensors.size()))));
    TENSORD_CLIENT_ASSIGN_OR_RETURN(
        const v1::ListLargestTensorsResponse response,
        channels_->Call(channels_->admin, &Admin::ListLargestTensors, request));
    for (const auto& tensor : response.tensors()) {
      tensors.push_back(FromProto(tensor));
    }
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty() &&
           static_cast<int64_t>(tensors.size()) < most);
  return tensors;
}

absl::StatusOr<int64_t> Operator::CancelRequest(
    std::string_view request_id) const {
  v1::CancelOperationsRequest request;
  request.set_request_id(std::string(request_id));
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::CancelOperationsResponse response,
      channels_->Call(channels_->admin, &Admin::CancelOperations, request));
  return response.cancelled_count();
}

absl::StatusOr<int64_t> Operator::CancelSession(int64_t number) const {
  v1::CancelOperationsRequest request;
  request.set_session_number(number);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::CancelOperationsResponse response,
      channels_->Call(channels_->admin, &Admin::CancelOperations, request));
  return response.cancelled_count();
}

absl::StatusOr<Evicted> Operator::EvictSession(int64_t number) const {
  v1::EvictSessionsRequest request;
  request.set_session_number(number);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::EvictSessionsResponse response,
      channels_->Call(channels_->admin, &Admin::EvictSessions, request));
  return FromProto(response);
}

absl::StatusOr<Evicted> Operator::EvictIdle(std::string_view tenant,
                                            absl::Duration idle) const {
  v1::EvictSessionsRequest request;
  request.set_tenant(std::string(tenant));
  *request.mutable_idle() = internal::ToProto(idle);
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::EvictSessionsResponse response,
      channels_->Call(channels_->admin, &Admin::EvictSessions, request));
  return FromProto(response);
}

absl::StatusOr<Trimmed> Operator::Trim() const {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::TrimMemoryResponse response,
      channels_->Call(channels_->admin, &Admin::TrimMemory,
                      v1::TrimMemoryRequest()));
  Trimmed trimmed{.devices = {}, .heap_bytes = response.heap_bytes()};
  for (const v1::TrimmedDevice& device : response.devices()) {
    trimmed.devices.push_back({.device = device.device(),
                               .memory_bytes = device.memory_bytes(),
                               .staging_bytes = device.staging_bytes()});
  }
  return trimmed;
}

absl::Status Operator::Drain(std::optional<absl::Duration> timeout) const {
  v1::DrainServerRequest request;
  if (timeout) *request.mutable_timeout() = internal::ToProto(*timeout);
  return channels_->Call(channels_->admin, &Admin::DrainServer, request)
      .status();
}

absl::StatusOr<std::vector<ServerSetting>> Operator::Config() const {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::GetServerConfigResponse response,
      channels_->Call(channels_->admin, &Admin::GetServerConfig,
                      v1::GetServerConfigRequest()));
  std::vector<ServerSetting> settings;
  for (const v1::ServerSetting& setting : response.settings()) {
    settings.push_back(
        {.key = setting.key(),
         .value = setting.value(),
         .origin = setting.origin(),
         .values = {setting.values().begin(), setting.values().end()}});
  }
  return settings;
}

absl::StatusOr<std::vector<ReloadedFiles>> Operator::Reload() const {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::ReloadServerConfigResponse response,
      channels_->Call(channels_->admin, &Admin::ReloadServerConfig,
                      v1::ReloadServerConfigRequest()));
  std::vector<ReloadedFiles> reloaded;
  for (const v1::ReloadedFiles& files : response.files()) {
    reloaded.push_back({.what = files.what(),
                        .paths = {files.paths().begin(), files.paths().end()},
                        .error = files.error()});
  }
  return reloaded;
}

absl::StatusOr<std::string> Operator::LogLevel() const {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::GetLogLevelResponse response,
      channels_->Call(channels_->admin, &Admin::GetLogLevel,
                      v1::GetLogLevelRequest()));
  return response.level();
}

absl::StatusOr<std::string> Operator::SetLogLevel(
    std::string_view level) const {
  v1::SetLogLevelRequest request;
  request.set_level(std::string(level));
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::SetLogLevelResponse response,
      channels_->Call(channels_->admin, &Admin::SetLogLevel, request));
  return response.previous_level();
}

}  // namespace tensord
