// Handlers of ComputeService.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/host_memory.h"
#include "server/execution/operation_request.h"
#include "server/execution/run.h"
#include "server/rpc/service.h"
#include "server/telemetry/metrics.h"
#include "tensord/v1/compute.pb.h"

namespace tensord::rpc {

class ComputeService final : public Service {
 public:
  explicit ComputeService(ServiceContext& context)
      : Service(ServiceBeside<v1::ContractRequest>("ComputeService")),
        context_(context) {}

  void ServeOn(LoopGroup& loops) override;

 private:
  struct Received;
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
  template <typename Request, typename Response>
  Task<absl::StatusOr<Response>> Compute(Call& call, const Request& request);

  Task<absl::Status> ExecuteStream(Call& call, Reader in,
                                   Writer<v1::ExecuteStreamResponse> out);
  Detached Receive(Call::Hold hold, Call& call, Reader in,
                   std::shared_ptr<OpenStream> stream);
  /// An operation of a stream that has ended well.
  struct Outcome {
    std::shared_ptr<server::Session> session;
    RunRef run;                        // null: it was carried out before
    std::optional<v1::Result> answer;  // of one that may be repeated
    server::HostHold hold;             // until the client has the response
  };
  /// What the client is to hear of an operation.
  struct Done {
    std::unique_ptr<v1::ExecuteStreamResponse> response =
        std::make_unique<v1::ExecuteStreamResponse>();
    server::HostHold hold;
    /// New results that the server has named; they go if nobody hears of them.
    std::vector<std::shared_ptr<server::StoredTensor>> unnamed;
    std::shared_ptr<server::Session> session;  // whose they are
  };
  /// Carries out operation number `i` of a message. Returns the response's
  /// bytes.
  Task<int64_t> ExecuteNext(Call& call, std::shared_ptr<Received> received,
                            int i, OpenStream& stream, Done& done);
  /// ExecuteNext(), but for what the door and the client are told. Says as what
  /// it counts in `operation`.
  Task<absl::StatusOr<Outcome>> ExecuteOne(
      Call& call, Received& received, const v1::ExecuteStreamRequest& request,
      int64_t index, OpenStream& stream,
      server::Metrics::Operation*& operation);
  /// The last part of ExecuteOne() in a stream whose operations are carried out
  /// at most once.
  Task<absl::Status> ExecuteOnce(Call& call,
                                 const v1::ExecuteStreamRequest& request,
                                 int64_t index, Outcome& outcome,
                                 server::Metrics::Operation*& operation);
  /// Whether as many of the stream's operations are without a response as may.
  bool IsFull(const OpenStream& stream) const;
  /// Writes responses until the last; ends with what kept it from that.
  Task<absl::Status> Answer(Call& call, OpenStream& stream,
                            Writer<v1::ExecuteStreamResponse> out);

  ServiceContext& context_;
};

}  // namespace tensord::rpc
