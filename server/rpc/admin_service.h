// Handlers of AdminService.
#pragma once

#include <cstdint>

#include "server/rpc/service.h"
#include "tensord/v1/admin.pb.h"

namespace tensord::rpc {

class AdminService final : public Service {
 public:
  explicit AdminService(ServiceContext& context)
      : Service(ServiceBeside<v1::GetServerInfoRequest>("AdminService")),
        context_(context) {}

  void ServeOn(LoopGroup& loops) override;

 private:
  Task<absl::StatusOr<v1::GetServerInfoResponse>> GetInfo(
      Call& call, const v1::GetServerInfoRequest& request);
  Task<absl::StatusOr<v1::GetServerStatsResponse>> GetStats(
      Call& call, const v1::GetServerStatsRequest& request);

  // admin_lists.cc
  /// The page of `size` sessions that follows number `after`.
  v1::ListSessionsResponse Sessions(const v1::ListSessionsRequest& request,
                                    uint64_t after, int size) const;
  Task<absl::StatusOr<v1::ListSessionsResponse>> ListSessions(
      Call& call, const v1::ListSessionsRequest& request);
  Task<absl::StatusOr<v1::ListOperationsResponse>> ListOperations(
      Call& call, const v1::ListOperationsRequest& request);
  Task<absl::StatusOr<v1::ListLargestTensorsResponse>> ListTensors(
      Call& call, const v1::ListLargestTensorsRequest& request);

  // admin_verbs.cc
  void ServeVerbsOn(LoopGroup& loops);
  Task<absl::StatusOr<v1::CancelOperationsResponse>> Cancel(
      Call& call, const v1::CancelOperationsRequest& request);
  Task<absl::StatusOr<v1::EvictSessionsResponse>> Evict(
      Call& call, const v1::EvictSessionsRequest& request);
  Task<absl::StatusOr<v1::TrimMemoryResponse>> Trim(
      Call& call, const v1::TrimMemoryRequest& request);
  Task<absl::StatusOr<v1::DrainServerResponse>> Drain(
      Call& call, const v1::DrainServerRequest& request);
  Task<absl::StatusOr<v1::GetServerConfigResponse>> GetConfig(
      Call& call, const v1::GetServerConfigRequest& request);
  Task<absl::StatusOr<v1::ReloadServerConfigResponse>> Reload(
      Call& call, const v1::ReloadServerConfigRequest& request);
  Task<absl::StatusOr<v1::GetLogLevelResponse>> GetLevel(
      Call& call, const v1::GetLogLevelRequest& request);
  Task<absl::StatusOr<v1::SetLogLevelResponse>> SetLevel(
      Call& call, const v1::SetLogLevelRequest& request);

  ServiceContext& context_;
};

}  // namespace tensord::rpc
