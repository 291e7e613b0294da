// Handlers of ProgramService.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/rpc/coroutine/background.h"
#include "server/rpc/service.h"
#include "server/session/program/prepared_program.h"
#include "server/session/program/program_cache.h"
#include "server/session/program/program_request.h"
#include "server/session/program/program_run.h"
#include "tensord/v1/program.grpc.pb.h"

namespace tensord::rpc {

class ProgramService final : public Service {
 public:
  explicit ProgramService(ServiceContext& context);

  grpc::Service& service() override { return service_; }
  void ServeOn(LoopGroup& loops) override;

 private:
  using Program = std::shared_ptr<const server::PreparedProgram>;

  /// A program and what it is to run on.
  ///
  /// Lifetime  refers to the request.
  struct Asked {
    std::shared_ptr<server::Session> session;
    server::ProgramSpec spec;  // of a prepared one operands and outputs
    server::FoundOperands found;
    Program program;  // null: to be prepared
    Program like;     // the same but for scalars, if there is one
    bool is_known = false;
    absl::Duration prepared;  // how long that took
  };

  /// What `spec` is asked for.
  enum class Purpose { kExecute, kExplain, kCreate };

  /// What `spec` asks for, of the call's session.
  absl::StatusOr<Asked> Ask(const Call& call, const v1::ProgramSpec& spec,
                            Purpose purpose);
  /// What an execution of a prepared program asks for.
  absl::StatusOr<Asked> AskPrepared(const Call& call,
                                    const v1::ExecuteProgramRequest& request);
  /// Prepares the program of `asked` unless it is there.
  Task<absl::Status> Prepare(Call& call, Asked& asked);

  /// The plans that a program needs.
  absl::StatusOr<std::vector<std::shared_ptr<const core::Plan>>> PlansOf(
      const server::Session& session, const server::PreparedProgram& program);
  absl::StatusOr<v1::Program> Describe(const server::Session& session,
                                       const server::PreparedProgram& program,
                                       bool explains);

  Task<absl::StatusOr<v1::ExecuteProgramResponse>> Execute(
      Call& call, const v1::ExecuteProgramRequest& request);
  Task<absl::StatusOr<v1::ExplainProgramResponse>> ExplainSpec(
      Call& call, const v1::ExplainProgramRequest& request);
  Task<absl::StatusOr<v1::CreateProgramResponse>> Create(
      Call& call, const v1::CreateProgramRequest& request);
  Task<absl::StatusOr<v1::DescribeProgramResponse>> DescribeOne(
      Call& call, const v1::DescribeProgramRequest& request);
  Task<absl::StatusOr<v1::ListProgramsResponse>> List(
      Call& call, const v1::ListProgramsRequest& request);
  Task<absl::StatusOr<v1::DeleteProgramResponse>> Delete(
      Call& call, const v1::DeleteProgramRequest& request);

  ServiceContext& context_;
  server::ProgramCache cache_;
  Background background_;  // searches paths
  v1::ProgramService::AsyncService service_;
};

}  // namespace tensord::rpc
