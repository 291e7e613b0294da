#include "client/cpp/src/channels.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "tensord/status.h"

namespace tensord::internal {
namespace {

/// One whose calls all fail if there is no access.
std::shared_ptr<grpc::Channel> Connect(
    const std::string& address,
    const absl::StatusOr<std::unique_ptr<Access>>& access) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  // Else channels to one address share a connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A proxy would take what stays on this machine elsewhere.
  if (IsLocal(address)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(
      address, access.ok() ? (*access)->channel_credentials() : nullptr,
      arguments);
}

}  // namespace

Channels::Channels(std::string_view address, absl::Duration deadline,
                   const Credentials& credentials,
                   std::function<Headers()> headers)
    : default_deadline_(deadline),
      access_(Access::Resolve(std::string(address), credentials)),
      headers_(std::move(headers)),
      calls_(Connect(std::string(address), access_)),
      bulk_(address, Connect(std::string(address), access_)),
      admin(v1::AdminService::NewStub(calls_)),
      session(v1::SessionService::NewStub(calls_)),
      tensor(v1::TensorService::NewStub(calls_)),
      compute(v1::ComputeService::NewStub(calls_)),
      plan(v1::PlanService::NewStub(calls_)),
      plan_cache(v1::PlanCacheService::NewStub(calls_)),
      program(v1::ProgramService::NewStub(calls_)),
      view(v1::ViewService::NewStub(calls_)) {}

Channels::Channels(std::string_view address,
                   std::shared_ptr<grpc::Channel> channel,
                   absl::Duration deadline,
                   std::function<void(grpc::ClientContext&)> prepare)
    : default_deadline_(deadline),
      access_(nullptr),
      prepare_(std::move(prepare)),
      calls_(channel),
      bulk_(address, std::move(channel)),
      admin(v1::AdminService::NewStub(calls_)),
      session(v1::SessionService::NewStub(calls_)),
      tensor(v1::TensorService::NewStub(calls_)),
      compute(v1::ComputeService::NewStub(calls_)),
      plan(v1::PlanService::NewStub(calls_)),
      plan_cache(v1::PlanCacheService::NewStub(calls_)),
      program(v1::ProgramService::NewStub(calls_)),
      view(v1::ViewService::NewStub(calls_)) {}

absl::Status Channels::Delete(const std::string& name,
                              absl::Time deadline) const {
  if (absl::StrContains(name, "/plans/")) {
    v1::DeletePlanRequest request;
    request.set_plan(name);
    return Call(plan, &v1::PlanService::Stub::DeletePlan, request, deadline)
        .status();
  }
  if (absl::StrContains(name, "/programs/")) {
    v1::DeleteProgramRequest request;
    request.set_program(name);
    return Call(program, &v1::ProgramService::Stub::DeleteProgram, request,
                deadline)
        .status();
  }
  v1::DeleteTensorRequest request;
  request.set_tensor(name);
  return Call(tensor, &v1::TensorService::Stub::DeleteTensor, request, deadline)
      .status();
}

absl::StatusOr<int64_t> Channels::DeleteTensors(
    std::span<const std::string> names, absl::Time deadline) const {
  constexpr size_t kMostNames = 1000;  // of one call
  int64_t deleted_count = 0;
  absl::Status first;
  while (!names.empty()) {
    const auto some = names.first(std::min(names.size(), kMostNames));
    names = names.subspan(some.size());
    v1::DeleteTensorsRequest request;
    request.set_session(some[0].substr(0, some[0].find("/tensors/")));
    for (const std::string& name : some) request.add_tensors(name);
    const auto response = Call(tensor, &v1::TensorService::Stub::DeleteTensors,
                               request, deadline);
    if (response.ok()) deleted_count += response->deleted_count();
    first.Update(response.status());
  }
  if (!first.ok()) return first;
  return deleted_count;
}

absl::StatusOr<v1::ShareTensorResponse> Channels::Share(
    const std::string& name, std::span<const std::string> tenants) const {
  v1::ShareTensorRequest request;
  request.set_tensor(name);
  request.mutable_tenants()->Add(tenants.begin(), tenants.end());
  return Call(tensor, &v1::TensorService::Stub::ShareTensor, request);
}

absl::StatusOr<v1::UnshareTensorResponse> Channels::Unshare(
    const std::string& name, std::span<const std::string> tenants) const {
  v1::UnshareTensorRequest request;
  request.set_tensor(name);
  request.mutable_tenants()->Add(tenants.begin(), tenants.end());
  return Call(tensor, &v1::TensorService::Stub::UnshareTensor, request);
}

void Channels::Prepare(grpc::ClientContext& context,
                       absl::Time deadline) const {
  if (access_.ok() && *access_ != nullptr) {
    const std::string authorization = (*access_)->authorization();
    if (!authorization.empty()) {
      context.AddMetadata("authorization", authorization);
    }
  }
  if (headers_ != nullptr) {
    for (const auto& [key, value] : headers_()) context.AddMetadata(key, value);
  }
  if (prepare_ != nullptr) prepare_(context);
  if (deadline == absl::InfinitePast()) {
    deadline = absl::Now() + default_deadline_;
  }
  if (deadline != absl::InfiniteFuture()) {
    context.set_deadline(absl::ToChronoTime(deadline));
  }
}

absl::Status Channels::Outcome(const grpc::Status& status,
                               const grpc::ClientContext& context) const {
  if (!access_.ok()) return access_.status();
  const absl::Status outcome = FromGrpc(status, context);
  if (*access_ == nullptr) return outcome;
  return ReasonOf(outcome).empty() ? (*access_)->Explain(outcome) : outcome;
}

}  // namespace tensord::internal
