// Handlers of PlanService.
#pragma once

#include "server/execution/operation.h"
#include "server/execution/prepared_plan.h"
#include "server/rpc/service.h"
#include "tensord/v1/plan.pb.h"

namespace tensord::rpc {

class PlanService final : public Service {
 public:
  explicit PlanService(ServiceContext& context)
      : Service(ServiceBeside<v1::CreatePlanRequest>("PlanService")),
        context_(context) {}

  void ServeOn(LoopGroup& loops) override;

 private:
  /// An operation as its session would plan it.
  struct Asked {
    server::OperationRequest request;
    server::PlannedOperation planned;
  };
  /// Of a message whose oneof holds one of the operations.
  template <typename Message>
  static absl::StatusOr<Asked> Ask(const Call& call, const Message& message);

  /// How `key`, of which the cache has `entry`, is decided: as the cache has it
  /// or, without being kept, as the planner would have it. Counts as no hit.
  absl::StatusOr<core::PlanCache::Lookup> Peek(
      server::Session& session, const core::PlanKey& key,
      const std::optional<core::PlanEntry>& entry);
  v1::ExplainPlanResponse ExplainKey(
      server::Session& session, const core::PlanKey& key,
      const std::optional<core::PlanEntry>& entry,
      const absl::StatusOr<core::PlanCache::Lookup>& decided);
  /// All that there is to say of a plan.
  v1::Plan Describe(server::Session& session, const server::PreparedPlan& plan);

  Task<absl::StatusOr<v1::ExplainPlanResponse>> Explain(
      Call& call, const v1::ExplainPlanRequest& request);
  Task<absl::StatusOr<v1::CreatePlanResponse>> Create(
      Call& call, const v1::CreatePlanRequest& request);
  Task<absl::StatusOr<v1::DescribePlanResponse>> Describe(
      Call& call, const v1::DescribePlanRequest& request);
  Task<absl::StatusOr<v1::ListPlansResponse>> List(
      Call& call, const v1::ListPlansRequest& request);
  Task<absl::StatusOr<v1::DeletePlanResponse>> Delete(
      Call& call, const v1::DeletePlanRequest& request);
  Task<absl::StatusOr<v1::ListKernelsResponse>> ListKernels(
      Call& call, const v1::ListKernelsRequest& request);

  ServiceContext& context_;
};

}  // namespace tensord::rpc
