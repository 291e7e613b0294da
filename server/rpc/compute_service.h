// Handlers of ComputeService.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/execution/operation_request.h"
#include "server/execution/run.h"
#include "server/rpc/service.h"
#include "server/telemetry/metrics.h"
#include "tensord/v1/compute.grpc.pb.h"

namespace tensord::rpc {

class ComputeService final : public Service {
 public:
  explicit ComputeService(ServiceContext& context) : context_(context) {}

  grpc::Service& service() override { return service_; }
  void ServeOn(LoopGroup& loops) override;

 private:
  struct OpenStream;
  using RunRef = std::unique_ptr<server::Run>;

  /// An operation as a request asks for it.
  ///
  /// Lifetime  `operation` refers to the request.
  struct Asked {
    server::Metrics::Operation* counted;
    absl::StatusOr<server::OperationRequest> operation;
  };
  template <typename Request>
  Asked Ask(server::Session& session, const Request& request) const;
  Asked Ask(server::Session& session,
            const v1::ExecutePlanRequest& request) const;
  /// Requires  the request has an operation.
  Asked Ask(server::Session& session,
            const v1::ExecuteStreamRequest& request) const;

  /// Carries out an operation, whichever rpc asks for it. With its first part
  /// the operation takes its place in the session's order; the request is not
  /// needed any more then.
  Task<absl::StatusOr<RunRef>> Execute(Call& call,
                                       std::shared_ptr<server::Session> session,
                                       Asked asked);

  /// The unary rpcs: they differ in their messages only.
  template <typename Response>
  Task<absl::StatusOr<Response>> Compute(Call& call, Asked asked);
  template <typename Request, typename Response, typename Method>
  void ServeOne(LoopGroup& loops, absl::string_view rpc, Method method);

  Task<absl::Status> ExecuteStream(Call& call,
                                   Reader<v1::ExecuteStreamRequest> in,
                                   Writer<v1::ExecuteStreamResponse> out);
  Detached Receive(Call::Hold hold, Call& call,
                   Reader<v1::ExecuteStreamRequest> in,
                   std::shared_ptr<OpenStream> stream);
  /// An operation of a stream that has ended well.
  struct Done {
    RunRef run;                        // null: it was carried out before
    std::optional<v1::Result> answer;  // of one that may be repeated
  };
  Task<absl::StatusOr<Done>> ExecuteNext(
      Call& call, const v1::ExecuteStreamRequest& request, OpenStream& stream);
  /// ExecuteNext(), but for what the door is told. Says as what it counts in
  /// `operation`.
  Task<absl::StatusOr<Done>> ExecuteOne(Call& call,
                                        const v1::ExecuteStreamRequest& request,
                                        OpenStream& stream,
                                        server::Metrics::Operation*& operation);
  /// ExecuteOne() of a stream whose operations are carried out at most once.
  Task<absl::StatusOr<Done>> ExecuteOnce(
      Call& call, const v1::ExecuteStreamRequest& request, int64_t index,
      std::shared_ptr<server::Session> session,
      server::Metrics::Operation*& operation);
  /// Whether as many of the stream's operations are without a response as may.
  bool IsFull(const OpenStream& stream) const;
  /// Makes the response to operation number `index` that has ended so.
  static void Say(const absl::StatusOr<Done>& done, int64_t index,
                  const std::string& request_id,
                  v1::ExecuteStreamResponse& response);
  static Task<absl::Status> Answer(Call& call, OpenStream& stream,
                                   Writer<v1::ExecuteStreamResponse> out);

  ServiceContext& context_;
  v1::ComputeService::AsyncService service_;
};

}  // namespace tensord::rpc
