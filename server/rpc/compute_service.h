// Handlers of ComputeService.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/rpc/service.h"
#include "server/session/operation.h"
#include "server/session/operation_request.h"
#include "tensord/v1/compute.grpc.pb.h"

namespace tensord::rpc {

class ComputeService final : public Service {
 public:
  explicit ComputeService(ServiceContext& context) : context_(context) {}

  grpc::Service& service() override { return service_; }
  void ServeOn(LoopGroup& loops) override;

 private:
  struct OpenStream;

  /// An operation as a request asks for it.
  ///
  /// Lifetime  `operation` refers to the request.
  struct Asked {
    absl::string_view name;  // of the operation
    absl::StatusOr<server::OperationRequest> operation;
  };
  template <typename Request>
  static Asked Ask(server::OperationKind kind, const Request& request);
  static Asked Ask(server::Session& session,
                   const v1::ExecutePlanRequest& request);
  /// Requires  the request has an operation.
  static Asked Ask(server::Session& session,
                   const v1::ExecuteStreamRequest& request);
  /// Of the operation; "" when there is none.
  static absl::string_view NameOf(const v1::ExecuteStreamRequest& request);

  /// An operation that is, or has been, carried out.
  struct Executed {
    std::shared_ptr<server::Session> session;
    std::unique_ptr<server::Operation> operation;
    bool is_output_anonymous = false;  // new, and named by the server
    absl::Time arrived;
    server::DeviceWorker::Times times;

    // What OnDevice calls.
    absl::Status Launch(core::Stream& stream) const {
      return operation->Launch(stream);
    }
    bool CanLaunchAgain() const { return operation->CanLaunchAgain(); }
    bool WantsDeviceAlone() const { return operation->WantsDeviceAlone(); }
    void Complete(const absl::Status& status,
                  const server::DeviceWorker::Times& worked) {
      times = worked;
      operation->Complete(status);
    }
  };
  static void FillResult(const Executed& executed, v1::Result* result);
  /// Removes an output whose name the client will never learn.
  static void DropOutput(const Executed& executed);

  /// Carries out an operation, whichever rpc asks for it. With its first part
  /// the operation takes its place in the session's order; the request is not
  /// needed any more then.
  Task<absl::StatusOr<Executed>> Run(Call& call,
                                     std::shared_ptr<server::Session> session,
                                     Asked asked);

  /// The unary rpcs: they differ in their messages only.
  template <typename Response>
  Task<absl::StatusOr<Response>> Compute(Call& call, Asked asked);

  Task<absl::Status> ExecuteStream(Call& call,
                                   Reader<v1::ExecuteStreamRequest> in,
                                   Writer<v1::ExecuteStreamResponse> out);
  Detached Receive(Call::Hold hold, Call& call,
                   Reader<v1::ExecuteStreamRequest> in,
                   std::shared_ptr<OpenStream> stream);
  Task<absl::StatusOr<Executed>> ExecuteNext(
      Call& call, const v1::ExecuteStreamRequest& request, OpenStream& stream);
  /// ExecuteNext(), but for what the door is told. Says what it is in
  /// `operation`.
  Task<absl::StatusOr<Executed>> ExecuteOne(
      Call& call, const v1::ExecuteStreamRequest& request, OpenStream& stream,
      absl::string_view& operation);
  static Task<absl::Status> Answer(Call& call, OpenStream& stream,
                                   Writer<v1::ExecuteStreamResponse> out);

  ServiceContext& context_;
  v1::ComputeService::AsyncService service_;
};

}  // namespace tensord::rpc
