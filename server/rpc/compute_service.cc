#include "server/rpc/compute_service.h"

#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/on_device.h"

namespace tensord::rpc {

using server::OperationKind;

void ComputeService::ServeOn(LoopGroup& loops) {
  using S = v1::ComputeService::AsyncService;
  loops.Serve("Permute", service_, &S::RequestPermute,
              [this](auto& call, auto& q) {
                return Compute<v1::PermuteResponse>(
                    call, Ask(OperationKind::kPermute, q));
              });
  loops.Serve("Elementwise", service_, &S::RequestElementwise,
              [this](auto& call, auto& q) {
                return Compute<v1::ElementwiseResponse>(
                    call, Ask(OperationKind::kElementwise, q));
              });
  loops.Serve("Reduce", service_, &S::RequestReduce,
              [this](auto& call, auto& q) {
                return Compute<v1::ReduceResponse>(
                    call, Ask(OperationKind::kReduce, q));
              });
  loops.Serve("Contract", service_, &S::RequestContract,
              [this](auto& call, auto& q) {
                return Compute<v1::ContractResponse>(
                    call, Ask(OperationKind::kContract, q));
              });
  loops.Serve("ExecutePlan", service_, &S::RequestExecutePlan,
              [this](auto& call, auto& q) {
                return Compute<v1::ExecutePlanResponse>(call,
                                                        Ask(call.session(), q));
              });
  loops.Serve("ExecuteStream", service_, &S::RequestExecuteStream,
              [this](auto& call, auto in, auto out) {
                return ExecuteStream(call, in, out);
              });
}

template <typename Request>
ComputeService::Asked ComputeService::Ask(OperationKind kind,
                                          const Request& request) {
  return {server::NameOf(kind), FromProto(request)};
}

ComputeService::Asked ComputeService::Ask(
    server::Session& session, const v1::ExecutePlanRequest& request) {
  const auto plan = session.plans().Find(request.plan());
  if (!plan.ok()) return {"execute_plan", plan.status()};
  const absl::string_view name = server::NameOf((*plan)->request().kind);
  const auto execution = FromProto(request);
  if (!execution.ok()) return {name, execution.status()};
  auto operation = (*plan)->RequestFor(*execution);
  if (operation.ok()) operation->plan = *plan;
  return {name, std::move(operation)};
}

absl::string_view ComputeService::NameOf(
    const v1::ExecuteStreamRequest& request) {
  switch (request.operation_case()) {
    case v1::ExecuteStreamRequest::kPermute:
      return server::NameOf(OperationKind::kPermute);
    case v1::ExecuteStreamRequest::kElementwise:
      return server::NameOf(OperationKind::kElementwise);
    case v1::ExecuteStreamRequest::kReduce:
      return server::NameOf(OperationKind::kReduce);
    case v1::ExecuteStreamRequest::kContract:
      return server::NameOf(OperationKind::kContract);
    case v1::ExecuteStreamRequest::kExecutePlan: return "execute_plan";
    case v1::ExecuteStreamRequest::OPERATION_NOT_SET: return "";
  }
  return "";
}

ComputeService::Asked ComputeService::Ask(
    server::Session& session, const v1::ExecuteStreamRequest& request) {
  switch (request.operation_case()) {
    case v1::ExecuteStreamRequest::kPermute:
      return Ask(OperationKind::kPermute, request.permute());
    case v1::ExecuteStreamRequest::kElementwise:
      return Ask(OperationKind::kElementwise, request.elementwise());
    case v1::ExecuteStreamRequest::kReduce:
      return Ask(OperationKind::kReduce, request.reduce());
    case v1::ExecuteStreamRequest::kContract:
      return Ask(OperationKind::kContract, request.contract());
    default: return Ask(session, request.execute_plan());
  }
}

void ComputeService::FillResult(const Executed& executed, v1::Result* result) {
  const server::Operation& operation = *executed.operation;
  const server::StoredTensor& d = operation.output();
  *result->mutable_tensor() = ToProto(d);
  v1::ExecutionReport& report = *result->mutable_report();
  const absl::string_view kernel = operation.report().kernel;
  report.set_kernel(kernel.data(), kernel.size());
  report.set_plan_cache_hit(operation.report().plan_cache_hit);
  report.set_workspace_bytes(operation.report().workspace_bytes);
  report.set_gathered_bytes(operation.report().gathered_bytes);
  *report.mutable_queued() = ToProto(executed.times.begun - executed.arrived);
  *report.mutable_executed() =
      ToProto(executed.times.ended - executed.times.begun);
  if (operation.output_is_inline()) {
    result->set_data(operation.InlineResult());
  }
}

void ComputeService::DropOutput(const Executed& executed) {
  if (!executed.is_output_anonymous) return;
  executed.session->Remove(executed.operation->output());
}

Task<absl::StatusOr<ComputeService::Executed>> ComputeService::Run(
    Call& call, std::shared_ptr<server::Session> session, Asked asked) {
  const absl::Time arrived = absl::Now();
  if (!asked.operation.ok()) co_return asked.operation.status();
  absl::ReleasableMutexLock order(&session->order());
  auto operation =
      server::Operation::Prepare(context_.engine, session, *asked.operation,
                                 context_.limits.max_inline_bytes);
  if (!operation.ok()) co_return operation.status();
  const server::OutputRequest& d = asked.operation->d;
  Executed executed{.session = session,
                    .operation = *std::move(operation),
                    .is_output_anonymous =
                        d.tensor.empty() && d.tensor_id.empty() && !d.is_inline,
                    .arrived = arrived,
                    .times = {}};
  const absl::Status status = co_await OnDevice(
      call, session->device().worker(), session->number(), executed, &order);
  if (!status.ok()) co_return status;
  co_return executed;
}

template <typename Response>
Task<absl::StatusOr<Response>> ComputeService::Compute(Call& call,
                                                       Asked asked) {
  call.record().operation = asked.name;
  auto executed = co_await Run(call, call.shared_session(), std::move(asked));
  if (!executed.ok()) co_return executed.status();
  call.record().kernel = executed->operation->report().kernel;
  if (call.cancelled()) DropOutput(*executed);
  Response response;
  FillResult(*executed, response.mutable_result());
  co_return response;
}

}  // namespace tensord::rpc
