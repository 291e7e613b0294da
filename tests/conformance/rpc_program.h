// Programs, for tests that speak to a server as a client does.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tensord/v1/program.grpc.pb.h"
#include "tests/conformance/rpc_conformance.h"

namespace tensord {

class RpcProgramTest : public RpcConformance {
 protected:
  using RpcConformance::RpcConformance;

  using Operands =
      std::vector<std::pair<std::string, std::variant<std::string, double>>>;

  static void AddOperands(
      const Operands& operands,
      google::protobuf::RepeatedPtrField<v1::ProgramOperand>* to) {
    for (const auto& [name, source] : operands) {
      v1::ProgramOperand& operand = *to->Add();
      operand.set_name(name);
      if (const auto* tensor = std::get_if<std::string>(&source)) {
        operand.set_tensor(*tensor);
      } else {
        operand.mutable_scalar()->set_real(std::get<double>(source));
      }
    }
  }
  static v1::ProgramSpec Statements(const std::string& text,
                                    const Operands& operands) {
    v1::ProgramSpec spec;
    spec.mutable_source()->set_statements(text);
    AddOperands(operands, spec.mutable_operands());
    return spec;
  }
  static v1::ProgramSpec Einsum(const std::string& subscripts,
                                const std::vector<std::string>& tensors) {
    v1::ProgramSpec spec;
    spec.mutable_source()->set_einsum(subscripts);
    for (const std::string& tensor : tensors) {
      spec.add_operands()->set_tensor(tensor);
    }
    return spec;
  }
  Outcome Execute(const v1::ExecuteProgramRequest& request,
                  v1::ExecuteProgramResponse* response = nullptr) {
    v1::ExecuteProgramResponse unused;
    return Unary(&v1::ProgramService::Stub::ExecuteProgram, *programs_, request,
                 response == nullptr ? &unused : response);
  }
  Outcome Execute(const v1::ProgramSpec& spec,
                  v1::ExecuteProgramResponse* response = nullptr) {
    v1::ExecuteProgramRequest request;
    request.set_session(session_);
    *request.mutable_spec() = spec;
    return Execute(request, response);
  }
  Outcome CreateProgram(const v1::ProgramSpec& spec, const std::string& id,
                        v1::Program* program) {
    v1::CreateProgramRequest request;
    request.set_session(session_);
    request.set_program_id(id);
    *request.mutable_spec() = spec;
    v1::CreateProgramResponse response;
    const Outcome outcome = Unary(&v1::ProgramService::Stub::CreateProgram,
                                  *programs_, request, &response);
    *program = response.program();
    return outcome;
  }
  Outcome Explain(const v1::ProgramSpec& spec,
                  v1::ProgramExplanation* explanation = nullptr) {
    v1::ExplainProgramRequest request;
    request.set_session(session_);
    *request.mutable_spec() = spec;
    v1::ExplainProgramResponse response;
    const Outcome outcome = Unary(&v1::ProgramService::Stub::ExplainProgram,
                                  *programs_, request, &response);
    if (explanation != nullptr) *explanation = response.explanation();
    return outcome;
  }
  Outcome DeleteProgram(const std::string& name) {
    v1::DeleteProgramRequest request;
    request.set_program(name);
    v1::DeleteProgramResponse response;
    return Unary(&v1::ProgramService::Stub::DeleteProgram, *programs_, request,
                 &response);
  }
  int64_t TensorCount() {
    v1::DescribeSessionRequest request;
    request.set_session(session_);
    v1::DescribeSessionResponse response;
    EXPECT_THAT(Unary(&v1::SessionService::Stub::DescribeSession, *sessions_,
                      request, &response),
                IsOk());
    return response.session().tensor_count();
  }

  std::unique_ptr<v1::ProgramService::Stub> programs_ =
      v1::ProgramService::NewStub(channel_);
};

}  // namespace tensord
