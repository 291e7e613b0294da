#include "server/rpc/compute_service.h"

#include <utility>

#include "absl/strings/string_view.h"
#include "server/execution/operation.h"
#include "server/execution/prepared_plan.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/carry.h"
#include "server/rpc/coroutine/unheard.h"
#include "server/rpc/operations.h"

namespace tensord::rpc {

template <typename Request>
ComputeService::Asked ComputeService::Ask(server::Session&,
                                          const Request& request) const {
  return {context_.door.OperationOf(KindOf(&request)), FromProto(request)};
}

ComputeService::Asked ComputeService::Ask(
    server::Session& session, const v1::ExecutePlanRequest& request) const {
  const auto plan = session.plans().Find(request.plan());
  if (!plan.ok()) return {context_.door.unknown_plan(), plan.status()};
  server::Metrics::Operation* const counted =
      context_.door.OperationOf((*plan)->request().kind);
  const auto execution = FromProto(request);
  if (!execution.ok()) return {counted, execution.status()};
  auto operation = (*plan)->RequestFor(*execution);
  if (operation.ok()) operation->plan = *plan;
  return {counted, std::move(operation)};
}

ComputeService::Asked ComputeService::Ask(
    server::Session& session, const v1::ExecuteStreamRequest& request) const {
  return VisitOperation(
      request, [&](const auto& operation) { return Ask(session, operation); },
      [&] { return Ask(session, request.execute_plan()); });
}

Task<absl::StatusOr<ComputeService::RunRef>> ComputeService::Execute(
    Call& call, std::shared_ptr<server::Session> session, Asked asked) {
  if (!asked.operation.ok()) co_return asked.operation.status();
  co_return co_await Carry(call, session, [&] {
    return server::PrepareOperation(context_.engine, session, *asked.operation,
                                    context_.limits.max_inline_bytes);
  });
}

template <typename Request, typename Response>
Task<absl::StatusOr<Response>> ComputeService::Compute(Call& call,
                                                       const Request& request) {
  Asked asked = Ask(call.session(), request);
  call.record().operation = asked.counted;
  const auto run =
      co_await Execute(call, call.shared_session(), std::move(asked));
  if (!run.ok()) co_return run.status();
  call.record().kernel = (*run)->runner().kernel();
  Response response;
  *response.mutable_result() = ToProto(**run);
  RemoveUnheard(call, **run);
  co_return response;
}

void ComputeService::ServeOn(LoopGroup& loops) {
  using S = ComputeService;
  loops.Serve(raw(), "Permute", *this,
              &S::Compute<v1::PermuteRequest, v1::PermuteResponse>);
  loops.Serve(raw(), "Elementwise", *this,
              &S::Compute<v1::ElementwiseRequest, v1::ElementwiseResponse>);
  loops.Serve(raw(), "Reduce", *this,
              &S::Compute<v1::ReduceRequest, v1::ReduceResponse>);
  loops.Serve(raw(), "Contract", *this,
              &S::Compute<v1::ContractRequest, v1::ContractResponse>);
  loops.Serve(raw(), "Factorize", *this,
              &S::Compute<v1::FactorizeRequest, v1::FactorizeResponse>);
  loops.Serve(raw(), "SolveLinear", *this,
              &S::Compute<v1::SolveLinearRequest, v1::SolveLinearResponse>);
  loops.Serve(raw(), "ExecutePlan", *this,
              &S::Compute<v1::ExecutePlanRequest, v1::ExecutePlanResponse>);
  loops.Serve(raw(), "ExecuteStream", *this, &S::ExecuteStream);
}

}  // namespace tensord::rpc
