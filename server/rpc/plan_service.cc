#include "server/rpc/plan_service.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/base/status.h"
#include "core/plan/explain.h"
#include "core/plan/plan_key_codec.h"
#include "core/plan/planner.h"
#include "server/execution/operation_table.h"
#include "server/rpc/convert.h"
#include "server/rpc/coroutine/in_background.h"
#include "server/rpc/operations.h"

namespace tensord::rpc {
namespace {

/// What the cache has of `key`, if it has anything.
std::optional<core::PlanEntry> EntryOf(const core::PlanCache& cache,
                                       const core::PlanKey& key) {
  const std::string encoded = core::EncodePlanKey(key);
  for (core::PlanEntry& entry : cache.FindById(core::PlanIdOf(encoded))) {
    if (entry.key == encoded) return std::move(entry);
  }
  return std::nullopt;
}

/// The least that `candidate` took in nanoseconds; 0 when it was not timed.
double LeastTime(const core::PlanEntry& entry,
                 const core::Candidate& candidate) {
  for (const core::KernelTimes& times : entry.times) {
    if (times.kernel == candidate.name && !times.nanoseconds.empty()) {
      return *std::min_element(times.nanoseconds.begin(),
                               times.nanoseconds.end());
    }
  }
  return entry.plan->kernel_name() == candidate.name
             ? entry.plan->measured_nanoseconds
             : 0;
}

}  // namespace

void PlanService::ServeOn(LoopGroup& loops) {
  loops.Serve(raw(), "ExplainPlan", *this, &PlanService::Explain);
  loops.Serve(raw(), "CreatePlan", *this, &PlanService::Create);
  loops.Serve(raw(), "DescribePlan", *this, &PlanService::Describe);
  loops.Serve(raw(), "ListPlans", *this, &PlanService::List);
  loops.Serve(raw(), "DeletePlan", *this, &PlanService::Delete);
  loops.Serve(raw(), "ListKernels", *this, &PlanService::ListKernels);
}

template <typename Message>
absl::StatusOr<PlanService::Asked> PlanService::Ask(const Call& call,
                                                    const Message& message) {
  TENSORD_ASSIGN_OR_RETURN(
      server::OperationRequest request,
      VisitOperation(
          message, [](const auto& operation) { return FromProto(operation); },
          []() -> absl::StatusOr<server::OperationRequest> {
            return core::InvalidArgument("OPERATION_MISSING",
                                         "the request has no operation");
          }));
  TENSORD_ASSIGN_OR_RETURN(server::PlannedOperation planned,
                           server::PlanOperation(call.session(), request));
  return Asked{std::move(request), std::move(planned)};
}

absl::StatusOr<core::PlanCache::Lookup> PlanService::Peek(
    server::Session& session, const core::PlanKey& key,
    const std::optional<core::PlanEntry>& entry) {
  if (entry) return {{entry->plan, true}};
  core::PlanKey predicted = key;
  predicted.selection = core::Selection::kHeuristic;
  if (const auto other = EntryOf(context_.engine.plans(), predicted)) {
    return {{other->plan, true}};
  }
  TENSORD_ASSIGN_OR_RETURN(
      core::Plan plan, core::MakePlan(session.device().backend(), predicted));
  return {{std::make_shared<const core::Plan>(std::move(plan)), false}};
}

v1::ExplainPlanResponse PlanService::ExplainKey(
    server::Session& session, const core::PlanKey& key,
    const std::optional<core::PlanEntry>& entry,
    const absl::StatusOr<core::PlanCache::Lookup>& decided) {
  v1::ExplainPlanResponse response;
  response.set_problem(core::Summarize(key.problem));
  response.set_flops(core::FlopCount(key.problem));
  response.set_moved_bytes(core::MovedBytes(key.problem));
  if (core::IsEmpty(key.problem)) return response;
  for (const core::Candidate& candidate :
       core::ListCandidates(session.device().backend(), key)) {
    v1::KernelCandidate& said = *response.add_candidates();
    said.set_kernel(std::string(candidate.name));
    said.set_refusal(std::string(candidate.refusal.message()));
    if (candidate.solution == nullptr) continue;
    said.set_workspace_bytes(candidate.solution->workspace_bytes());
    said.set_decision(candidate.solution->decision());
    if (!candidate.refusal.ok()) continue;
    said.set_predicted_nanoseconds(candidate.solution->predicted_nanoseconds());
    if (entry) said.set_measured_nanoseconds(LeastTime(*entry, candidate));
  }
  // When none could run, the refusals above are the answer.
  if (decided.ok()) {
    response.set_kernel(std::string(decided->plan->kernel_name()));
    response.set_workspace_bytes(decided->plan->workspace_bytes());
    response.set_plan_cache_hit(decided->hit);
  }
  return response;
}

v1::Plan PlanService::Describe(server::Session& session,
                               const server::PreparedPlan& plan) {
  const server::OperationRequest& request = plan.request();
  v1::Plan message;
  message.set_name(plan.name());
  message.set_operation(std::string(server::NameOf(request.kind)));
  message.set_device(session.device().info().name);
  message.set_selection(ToProto(request.selection));
  const server::OperationTensors& tensors = plan.tensors();
  const auto input = [&](size_t i) {
    return ToProto(*tensors.inputs[i], request.inputs[i]->modes);
  };
  if (request.inputs[0]) *message.mutable_a() = input(0);
  if (request.inputs[1]) *message.mutable_b() = input(1);
  if (request.inputs[2]) *message.mutable_c() = input(2);
  for (size_t i = 0; i < request.results.size(); ++i) {
    (i == 0 ? *message.mutable_d() : *message.add_others()) =
        ToProto(*tensors.results[i], request.results[i].modes);
  }
  *message.mutable_alpha() = ToProto(request.alpha);
  *message.mutable_beta() = ToProto(request.beta);
  *message.mutable_gamma() = ToProto(request.gamma);
  message.set_execution_count(plan.execution_count());

  v1::ExplainPlanResponse& explanation = *message.mutable_explanation();
  const auto entry = EntryOf(context_.engine.plans(), plan.key());
  explanation =
      ExplainKey(session, plan.key(), entry, Peek(session, plan.key(), entry));
  bool is_first = true;
  for (const v1::KernelCandidate& candidate : explanation.candidates()) {
    if (!candidate.refusal().empty()) continue;
    const int64_t bytes = candidate.workspace_bytes();
    message.set_min_workspace_bytes(
        is_first ? bytes : std::min(message.min_workspace_bytes(), bytes));
    message.set_max_workspace_bytes(
        std::max(message.max_workspace_bytes(), bytes));
    is_first = false;
  }
  if (entry) {
    message.set_sample_count(entry->sample_count);
    message.set_wanted_sample_count(entry->wanted_sample_count);
    // When tuning is over, only its times are kept.
    if (entry->wanted_sample_count == 0) {
      int count = 0;
      for (const core::KernelTimes& times : entry->times) {
        count += static_cast<int>(times.nanoseconds.size());
      }
      message.set_sample_count(count);
      message.set_wanted_sample_count(count);
    }
  }
  return message;
}

Task<absl::StatusOr<v1::ExplainPlanResponse>> PlanService::Explain(
    Call& call, const v1::ExplainPlanRequest& request) {
  const absl::StatusOr<Asked> asked = Ask(call, request);
  if (!asked.ok()) co_return asked.status();
  server::Session& session = call.session();
  const core::PlanKey& key = asked->planned.key;
  const auto decided =
      context_.engine.PlanFor(session.device(), key, session.options().job);
  co_return ExplainKey(session, key, EntryOf(context_.engine.plans(), key),
                       decided);
}

Task<absl::StatusOr<v1::CreatePlanResponse>> PlanService::Create(
    Call& call, const v1::CreatePlanRequest& request) {
  absl::StatusOr<Asked> asked = Ask(call, request);
  if (!asked.ok()) co_return asked.status();
  server::Session& session = call.session();
  const auto lookup = context_.engine.PlanFor(
      session.device(), asked->planned.key, session.options().job);
  if (!lookup.ok()) co_return lookup.status();
  const auto plan = std::make_shared<server::PreparedPlan>(
      asked->request, std::move(asked->planned));
  const absl::Status counted = plan->CountAgainst(session.prepared_bytes());
  if (!counted.ok()) co_return counted;
  const auto make = [&](std::string name) {
    plan->set_name(std::move(name));
    return std::shared_ptr<const server::PreparedPlan>(plan);
  };
  const auto kept = session.plans().Add(request.plan_id(), make);
  if (!kept.ok()) co_return kept.status();
  if (request.plan_id().empty()) {
    call.OnUnheard([session = call.shared_session(), name = (*kept)->name()] {
      session->plans().Remove(name).IgnoreError();
    });
  }
  v1::CreatePlanResponse response;
  *response.mutable_plan() = Describe(session, **kept);
  co_return response;
}

Task<absl::StatusOr<v1::DescribePlanResponse>> PlanService::Describe(
    Call& call, const v1::DescribePlanRequest& request) {
  const auto plan = call.session().plans().Find(request.plan());
  if (!plan.ok()) co_return plan.status();
  v1::DescribePlanResponse response;
  *response.mutable_plan() = Describe(call.session(), **plan);
  co_return response;
}

Task<absl::StatusOr<v1::ListPlansResponse>> PlanService::List(
    Call& call, const v1::ListPlansRequest& request) {
  v1::ListPlansResponse response;
  absl::Status filled;
  auto fill = [&] {
    filled = FillPage(
        request,
        [&](absl::string_view after, int count) {
          return call.session().plans().List(after, count);
        },
        [&](const server::PreparedPlan& plan) {
          *response.add_plans() = Describe(call.session(), plan);
          return absl::OkStatus();
        },
        response);
  };
  // A thousand descriptions, each of which may have to be planned anew.
  const absl::Status waited = co_await InBackground(
      call, context_.preparer.background(), call.session().client(), fill);
  if (!waited.ok()) co_return waited;
  if (!filled.ok()) co_return filled;
  co_return response;
}

Task<absl::StatusOr<v1::DeletePlanResponse>> PlanService::Delete(
    Call& call, const v1::DeletePlanRequest& request) {
  const absl::Status removed = call.session().plans().Remove(request.plan());
  if (!removed.ok()) co_return removed;
  co_return v1::DeletePlanResponse();
}

Task<absl::StatusOr<v1::ListKernelsResponse>> PlanService::ListKernels(
    Call&, const v1::ListKernelsRequest& request) {
  const auto device = context_.engine.FindDevice(request.device());
  if (!device.ok()) co_return device.status();
  v1::ListKernelsResponse response;
  core::VisitKernels(
      (*device)->backend().kernels(), [&](size_t kind, const auto& kernels) {
        const auto operation = static_cast<server::OperationKind>(kind);
        for (const auto& kernel : kernels) {
          v1::Kernel& entry = *response.add_kernels();
          entry.set_name(std::string(kernel->name()));
          entry.set_version(kernel->version());
          entry.set_operation(std::string(server::NameOf(operation)));
        }
      });
  co_return response;
}

}  // namespace tensord::rpc
