#include "server/rpc/compute_service.h"

#include <utility>

#include "absl/strings/string_view.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/on_device.h"

namespace tensord::rpc {

using server::OperationKind;

void ComputeService::ServeOn(LoopGroup& loops) {
  using S = v1::ComputeService::AsyncService;
  loops.Serve(service_, &S::RequestPermute, [this](auto& call, auto& q) {
    return Compute<v1::PermuteResponse>(call, Ask(OperationKind::kPermute, q));
  });
  loops.Serve(service_, &S::RequestElementwise, [this](auto& call, auto& q) {
    return Compute<v1::ElementwiseResponse>(
        call, Ask(OperationKind::kElementwise, q));
  });
  loops.Serve(service_, &S::RequestReduce, [this](auto& call, auto& q) {
    return Compute<v1::ReduceResponse>(call, Ask(OperationKind::kReduce, q));
  });
  loops.Serve(service_, &S::RequestContract, [this](auto& call, auto& q) {
    return Compute<v1::ContractResponse>(call,
                                         Ask(OperationKind::kContract, q));
  });
  loops.Serve(service_, &S::RequestExecutePlan, [this](auto& call, auto& q) {
    return Compute<v1::ExecutePlanResponse>(call, Ask(q));
  });
  loops.Serve(service_, &S::RequestExecuteStream,
              [this](auto& call, auto in, auto out) {
                return ExecuteStream(call, in, out);
              });
}

template <typename Request>
ComputeService::Asked ComputeService::Ask(OperationKind kind,
                                          const Request& request) {
  return {server::NameOf(kind), request.session(), FromProto(request)};
}

ComputeService::Asked ComputeService::Ask(
    const v1::ExecutePlanRequest& request) const {
  const auto found = context_.FindPlan(request.plan());
  if (!found.ok()) {
    return {"execute_plan",
            std::string(server::SessionOf(request.plan(), server::kPlans)),
            found.status()};
  }
  const absl::string_view name = server::NameOf(found->plan->request().kind);
  const auto execution = FromProto(request);
  if (!execution.ok()) {
    return {name, found->session->name(), execution.status()};
  }
  auto operation = found->plan->RequestFor(*execution);
  if (operation.ok()) operation->plan = found->plan;
  return {name, found->session->name(), std::move(operation)};
}

absl::StatusOr<ComputeService::Asked> ComputeService::Ask(
    const v1::ExecuteStreamRequest& request) const {
  switch (request.operation_case()) {
    case v1::ExecuteStreamRequest::kPermute:
      return Ask(OperationKind::kPermute, request.permute());
    case v1::ExecuteStreamRequest::kElementwise:
      return Ask(OperationKind::kElementwise, request.elementwise());
    case v1::ExecuteStreamRequest::kReduce:
      return Ask(OperationKind::kReduce, request.reduce());
    case v1::ExecuteStreamRequest::kContract:
      return Ask(OperationKind::kContract, request.contract());
    case v1::ExecuteStreamRequest::kExecutePlan:
      return Ask(request.execute_plan());
    case v1::ExecuteStreamRequest::OPERATION_NOT_SET: break;
  }
  return core::InvalidArgument("OPERATION_MISSING",
                               "the request has no operation");
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

Task<absl::Status> ComputeService::Run(Call& call, const Asked& asked,
                                       Executed& executed) {
  if (!asked.operation.ok()) co_return asked.operation.status();
  const auto session = context_.sessions.Find(asked.session);
  if (!session.ok()) co_return session.status();
  const server::SessionUse use(*session);
  absl::ReleasableMutexLock order(&(*session)->order());
  auto operation =
      server::Operation::Prepare(context_.engine, *session, *asked.operation,
                                 context_.limits.max_inline_bytes);
  if (!operation.ok()) co_return operation.status();
  executed.session = *session;
  executed.operation = *std::move(operation);
  const server::OutputRequest& d = asked.operation->d;
  executed.is_output_anonymous =
      d.tensor.empty() && d.tensor_id.empty() && !d.is_inline;
  co_return co_await OnDevice(call, (*session)->device().worker(),
                              (*session)->number(), executed, &order);
}

Task<absl::StatusOr<ComputeService::Executed>> ComputeService::Execute(
    Call& call, Asked asked) {
  Executed executed;
  const absl::Status status = co_await Run(call, asked, executed);
  const absl::string_view name = asked.name;
  context_.statistics.CountOperation(name, NameOf(status.code()));
  if (!status.ok()) {
    context_.log.Event(status.code() == absl::StatusCode::kInternal
                           ? server::LogLevel::kError
                           : server::LogLevel::kDebug,
                       "operation_failed",
                       {{"session", asked.session},
                        {"operation", name},
                        {"code", NameOf(status.code())},
                        {"message", status.message()}});
    co_return status;
  }
  context_.log.Event(
      server::LogLevel::kDebug, "operation_done",
      {{"session", asked.session},
       {"operation", name},
       {"kernel", executed.operation->report().kernel},
       {"microseconds", absl::ToInt64Microseconds(executed.times.ended -
                                                  executed.times.begun)}});
  co_return executed;
}

template <typename Response>
Task<absl::StatusOr<Response>> ComputeService::Compute(Call& call,
                                                       Asked asked) {
  auto executed = co_await Execute(call, std::move(asked));
  if (!executed.ok()) co_return executed.status();
  if (call.cancelled()) DropOutput(*executed);
  Response response;
  FillResult(*executed, response.mutable_result());
  co_return response;
}

}  // namespace tensord::rpc
