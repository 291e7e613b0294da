// The part of Session that is about programs.
#include <deque>
#include <utility>
#include <variant>
#include <vector>

#include "client/cpp/src/connection.h"
#include "client/cpp/src/program_messages.h"
#include "tensord/session.h"

namespace tensord {

using internal::Channels;
using internal::Contents;
using internal::FromProto;
using internal::MakeSpec;
using Programs = v1::ProgramService::Stub;

namespace {

/// A program of one product.
ProgramOptions ForProgram(const ProductOptions& options) {
  ProgramOptions program{.path = options.path,
                         .compute_type = options.compute_type,
                         .workspace_limit_bytes = options.workspace_limit_bytes,
                         .deterministic = options.deterministic,
                         .selection = options.selection,
                         .order = options.output_order,
                         .outputs = {},
                         .deadline = options.deadline};
  ProgramOutput& output = program.outputs.emplace_back();
  if (options.output == nullptr) {
    output.tensor_name = options.output_name;
    output.element_type = options.output_element_type;
  } else {
    output.element_type = options.output->element_type();
  }
  return program;
}

}  // namespace

absl::StatusOr<RemoteTensor> Session::Einsum(std::string_view subscripts,
                                             ProgramOperands operands,
                                             const ProductOptions& options) {
  return RunProduct(EinsumText{std::string(subscripts)}, operands, options);
}

absl::StatusOr<RemoteTensor> Session::Ncon(const NconLabels& labels,
                                           ProgramOperands operands,
                                           const ProductOptions& options) {
  return RunProduct(labels, operands, options);
}

absl::StatusOr<RemoteTensor> Session::RunProduct(
    const ProgramSource& source, ProgramOperands operands,
    const ProductOptions& options) {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(ProgramResults results,
                                  Run(source, operands, ForProgram(options)));
  if (results.results.size() != 1 || !results.results[0].tensor) {
    return internal::Error(absl::StatusCode::kInternal, "RESPONSE_MALFORMED",
                           "the response to a product has not one tensor");
  }
  RemoteTensor made = *std::move(results.results[0].tensor);
  if (options.output == nullptr) return made;
  Modes modes;
  for (int i = 0; i < made.mode_count(); ++i) modes.labels.push_back(i);
  PermuteOptions copy;
  copy.execution.output = options.output;
  copy.execution.deadline = options.deadline;
  TENSORD_CLIENT_ASSIGN_OR_RETURN(RemoteTensor written,
                                  Permute({made, modes}, modes, copy));
  written.report_ = made.report_;
  return written;
}

absl::StatusOr<ProgramResults> Session::Run(const ProgramSource& source,
                                            ProgramOperands operands,
                                            const ProgramOptions& options) {
  v1::ExecuteProgramRequest request;
  request.set_session(name());
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      *request.mutable_spec(),
      MakeSpec(*connection_, source, operands, options, Contents::kSent));
  return internal::ProgramCalls::Execute(connection_, request,
                                         options.deadline);
}

absl::StatusOr<PreparedProgram> Session::PrepareProgram(
    const ProgramSource& source, ProgramOperands operands,
    const ProgramOptions& options, const PlanOptions& plan) {
  v1::CreateProgramRequest request;
  request.set_session(name());
  request.set_program_id(plan.name);
  // The program holds them, whose names go with these handles.
  std::deque<RemoteTensor> uploaded;
  std::vector<ProgramOperand> resident(operands.begin(), operands.end());
  for (ProgramOperand& operand : resident) {
    const auto* view = std::get_if<UntypedHostView>(&operand.value.source);
    if (!operand.is_constant || view == nullptr) continue;
    TENSORD_CLIENT_ASSIGN_OR_RETURN(RemoteTensor constant, Upload(*view));
    operand.value = uploaded.emplace_back(std::move(constant));
  }
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      *request.mutable_spec(),
      MakeSpec(*connection_, source, resident, options, Contents::kLeftOut));
  Channels& channels = connection_->channels();
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::CreateProgramResponse response,
      channels.Call(channels.program, &Programs::CreateProgram, request,
                    connection_->Deadline(plan.deadline)));
  return PreparedProgram(connection_, FromProto(response.program()));
}

absl::StatusOr<ProgramExplanation> Session::ExplainProgram(
    const ProgramSource& source, ProgramOperands operands,
    const ProgramOptions& options) const {
  v1::ExplainProgramRequest request;
  request.set_session(name());
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      *request.mutable_spec(),
      MakeSpec(*connection_, source, operands, options, Contents::kLeftOut));
  Channels& channels = connection_->channels();
  TENSORD_CLIENT_ASSIGN_OR_RETURN(
      const v1::ExplainProgramResponse response,
      channels.Call(channels.program, &Programs::ExplainProgram, request,
                    connection_->Deadline(options.deadline)));
  return FromProto(response.explanation());
}

absl::StatusOr<ProgramExplanation> Session::ExplainEinsum(
    std::string_view subscripts, ProgramOperands operands,
    const ProductOptions& options) const {
  return ExplainProgram(EinsumText{std::string(subscripts)}, operands,
                        ForProgram(options));
}

}  // namespace tensord
