// The connections to one server and the way calls are made on them.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/src/access.h"
#include "client/cpp/src/errors.h"
#include "client/cpp/src/transfer/bulk_channel.h"
#include "client/cpp/src/transfer/chunk_buffers.h"
#include "tensord/credentials.h"
#include "tensord/v1/admin.grpc.pb.h"
#include "tensord/v1/compute.grpc.pb.h"
#include "tensord/v1/plan.grpc.pb.h"
#include "tensord/v1/plan_cache.grpc.pb.h"
#include "tensord/v1/program.grpc.pb.h"
#include "tensord/v1/session.grpc.pb.h"
#include "tensord/v1/tensor.grpc.pb.h"
#include "tensord/v1/view.grpc.pb.h"

namespace tensord::internal {

/// One channel for calls and one, with a connection of its own, for transfers,
/// so that calls do not wait behind data.
///
/// Threads  safe for concurrent use.
class Channels {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  /// `headers` says what else each call sends along; null: nothing.
  /// Errors  of credentials, by all calls.
  Channels(std::string_view address, absl::Duration deadline,
           const Credentials& credentials,
           std::function<Headers()> headers = nullptr);

  /// One channel to `address`, which is there already and lets its calls in.
  /// `prepare` does to each call what else it needs.
  Channels(std::string_view address, std::shared_ptr<grpc::Channel> channel,
           absl::Duration deadline,
           std::function<void(grpc::ClientContext&)> prepare);

  /// Calls `method`, e.g. `&v1::TensorService::Stub::CreateTensor`, of `stub`.
  /// An infinite past `deadline` means the default one.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(
      const std::unique_ptr<Stub>& stub,
      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                   Response*),
      const Request& request, absl::Time deadline = absl::InfinitePast(),
      bool wait_for_ready = false) const {
    grpc::ClientContext context;
    context.set_wait_for_ready(wait_for_ready);
    Prepare(context, deadline);
    Response response;
    const grpc::Status status = ((*stub).*method)(&context, request, &response);
    if (!status.ok()) return Outcome(status, context);
    return response;
  }

  /// Deletes the tensor, plan or program of that name,
  /// `sessions/{session}/{collection}/{id}`.
  absl::Status Delete(const std::string& name,
                      absl::Time deadline = absl::InfinitePast()) const;

  /// Deletes tensors of one session, up to 1000 in a call. All are tried.
  /// Returns how many were deleted, or the first error.
  absl::StatusOr<int64_t> DeleteTensors(
      std::span<const std::string> names,
      absl::Time deadline = absl::InfinitePast()) const;

  /// Lets tenants read the tensor of that name; and no longer, all of them if
  /// none is named.
  absl::StatusOr<v1::ShareTensorResponse> Share(
      const std::string& name, std::span<const std::string> tenants) const;
  absl::StatusOr<v1::UnshareTensorResponse> Unshare(
      const std::string& name, std::span<const std::string> tenants) const;

  /// Before a call: sets its deadline, as Call() has it, and says who asks.
  void Prepare(grpc::ClientContext& context, absl::Time deadline) const;

  /// What came of a call, with the server's detail.
  absl::Status Outcome(const grpc::Status& status,
                       const grpc::ClientContext& context) const;

  absl::Duration default_deadline() const { return default_deadline_; }
  const std::shared_ptr<grpc::Channel>& calls() const { return calls_; }

  std::shared_ptr<grpc::Channel> bulk() const { return bulk_.get(); }
  /// What transfers send from.
  ChunkBuffers& buffers() const { return *buffers_; }

 private:
  const absl::Duration default_deadline_;
  // Null of a channel that lets its calls in.
  const absl::StatusOr<std::unique_ptr<Access>> access_;
  const std::function<Headers()> headers_;
  const std::function<void(grpc::ClientContext&)> prepare_;
  const std::shared_ptr<grpc::Channel> calls_;
  const BulkChannel bulk_;
  const std::shared_ptr<ChunkBuffers> buffers_ =
      std::make_shared<ChunkBuffers>();

 public:
  const std::unique_ptr<v1::AdminService::Stub> admin;
  const std::unique_ptr<v1::SessionService::Stub> session;
  const std::unique_ptr<v1::TensorService::Stub> tensor;
  const std::unique_ptr<v1::ComputeService::Stub> compute;
  const std::unique_ptr<v1::PlanService::Stub> plan;
  const std::unique_ptr<v1::PlanCacheService::Stub> plan_cache;
  const std::unique_ptr<v1::ProgramService::Stub> program;
  const std::unique_ptr<v1::ViewService::Stub> view;
};

}  // namespace tensord::internal
