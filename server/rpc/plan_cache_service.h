// Handlers of PlanCacheService.
#pragma once

#include <atomic>
#include <string>

#include "server/rpc/service.h"
#include "tensord/v1/plan_cache.pb.h"

namespace tensord::rpc {

class PlanCacheService final : public Service {
 public:
  explicit PlanCacheService(ServiceContext& context)
      : Service(ServiceBeside<v1::ClearPlanCacheRequest>("PlanCacheService"),
                {"DumpPlanCache", "LoadPlanCache"}),
        context_(context) {}

  void ServeOn(LoopGroup& loops) override;

 private:
  Task<absl::StatusOr<v1::GetPlanCacheStatsResponse>> GetStats(
      Call& call, const v1::GetPlanCacheStatsRequest& request);
  Task<absl::StatusOr<v1::ListPlanCacheEntriesResponse>> List(
      Call& call, const v1::ListPlanCacheEntriesRequest& request);
  /// Does something to the entry of an id, as hexadecimal digits.
  template <typename Request, typename Response, auto change>
  Task<absl::StatusOr<Response>> Change(Call& call, const Request& request);
  Task<absl::StatusOr<v1::ClearPlanCacheResponse>> Clear(
      Call& call, const v1::ClearPlanCacheRequest& request);
  Task<absl::Status> Dump(Call& call, const v1::DumpPlanCacheRequest& request,
                          Writer<v1::DumpPlanCacheResponse> out);
  Task<absl::StatusOr<v1::LoadPlanCacheResponse>> Load(Call& call, Reader in);
  /// Plans the problems of a snapshot for the devices that are here.
  Task<absl::StatusOr<v1::LoadPlanCacheResponse>> PlanProblems(
      Call& call, std::string snapshot);

  core::PlanCache& cache() const { return context_.engine.plans(); }

  ServiceContext& context_;
  std::atomic<bool> is_loading_ =
      false;  // a snapshot that has come: one at a time
};

}  // namespace tensord::rpc
