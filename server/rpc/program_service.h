// Handlers of ProgramService.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/execution/program/preparation.h"
#include "server/execution/program/prepared_program.h"
#include "server/rpc/service.h"
#include "tensord/v1/program.pb.h"

namespace tensord::rpc {

class ProgramService final : public Service {
 public:
  explicit ProgramService(ServiceContext& context)
      : Service(ServiceBeside<v1::CreateProgramRequest>("ProgramService")),
        context_(context) {}

  void ServeOn(LoopGroup& loops) override;

 private:
  using Purpose = server::Preparation::Purpose;

  absl::StatusOr<server::Preparation> Read(const Call& call,
                                           const v1::ProgramSpec& spec,
                                           Purpose purpose);
  absl::StatusOr<server::Preparation> Read(
      const Call& call, const v1::ExecuteProgramRequest& request);
  /// Has the program ready, and waits until it is.
  Task<absl::Status> Prepare(Call& call, server::Preparation& preparation);

  /// Does what takes long if a program has many operations, elsewhere then.
  /// Errors  as InBackground.
  Task<absl::Status> Work(Call& call, const server::PreparedProgram& program,
                          absl::FunctionRef<void()> work);

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
};

}  // namespace tensord::rpc
