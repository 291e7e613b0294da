#include "server/rpc/plan_service.h"

#include <string>

#include "core/base/status.h"
#include "core/plan/explain.h"
#include "core/plan/planner.h"
#include "server/rpc/convert.h"
#include "server/session/operation.h"

namespace tensord::rpc {

void PlanService::ServeOn(LoopGroup& loops) {
  using S = v1::PlanService::AsyncService;
  loops.Serve(service_, &S::RequestExplainPlan,
              [this](auto& call, auto& q) { return Explain(call, q); });
}

template <typename Request>
absl::StatusOr<v1::ExplainPlanResponse> PlanService::ExplainOperation(
    const Request& request) {
  TENSORD_ASSIGN_OR_RETURN(const auto session,
                           context_.sessions.Find(request.session()));
  TENSORD_ASSIGN_OR_RETURN(const server::OperationRequest asked,
                           FromProto(request));
  TENSORD_ASSIGN_OR_RETURN(
      const core::PlanKey key,
      server::Operation::Key(*session, asked,
                             context_.limits.max_inline_bytes));
  v1::ExplainPlanResponse response;
  response.set_problem(core::Summarize(key.problem));
  response.set_flops(core::FlopCount(key.problem));
  response.set_moved_bytes(core::MovedBytes(key.problem));
  if (core::IsEmpty(key.problem)) return response;
  for (const core::Candidate& candidate :
       core::ListCandidates(session->device().backend(), key)) {
    v1::KernelCandidate& entry = *response.add_candidates();
    entry.set_kernel(std::string(candidate.name));
    entry.set_refusal(std::string(candidate.refusal.message()));
    entry.set_workspace_bytes(candidate.workspace_bytes);
    if (candidate.refusal.ok()) {
      entry.set_predicted_nanoseconds(candidate.predicted_nanoseconds);
    }
  }
  // When none could run, the refusals above are the answer.
  const auto lookup = context_.engine.PlanFor(session->device(), key);
  if (lookup.ok()) {
    response.set_kernel(std::string(lookup->plan->kernel_name()));
    response.set_workspace_bytes(lookup->plan->workspace_bytes);
    response.set_plan_cache_hit(lookup->hit);
  }
  return response;
}

Task<absl::StatusOr<v1::ExplainPlanResponse>> PlanService::Explain(
    Call&, const v1::ExplainPlanRequest& request) {
  switch (request.operation_case()) {
    case v1::ExplainPlanRequest::kPermute:
      co_return ExplainOperation(request.permute());
    case v1::ExplainPlanRequest::kElementwise:
      co_return ExplainOperation(request.elementwise());
    case v1::ExplainPlanRequest::kReduce:
      co_return ExplainOperation(request.reduce());
    case v1::ExplainPlanRequest::kContract:
      co_return ExplainOperation(request.contract());
    case v1::ExplainPlanRequest::OPERATION_NOT_SET: break;
  }
  co_return core::InvalidArgument("OPERATION_MISSING",
                                  "the request has no operation");
}

}  // namespace tensord::rpc
