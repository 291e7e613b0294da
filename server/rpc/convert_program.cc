// The part of convert.h that is about programs.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "server/rpc/convert.h"

namespace tensord::rpc {
namespace {

absl::StatusOr<server::ProgramSource> SourceFrom(
    const v1::ProgramSource& source) {
  switch (source.notation_case()) {
    case v1::ProgramSource::kStatements: return source.statements();
    case v1::ProgramSource::kEinsum: return server::EinsumText{source.einsum()};
    case v1::ProgramSource::kNcon: {
      server::NconText ncon;
      for (const v1::NconLabels& labels : source.ncon().operands()) {
        ncon.labels.emplace_back(labels.labels().begin(),
                                 labels.labels().end());
      }
      ncon.order.assign(source.ncon().order().begin(),
                        source.ncon().order().end());
      ncon.output.assign(source.ncon().output().begin(),
                         source.ncon().output().end());
      return ncon;
    }
    case v1::ProgramSource::NOTATION_NOT_SET: break;
  }
  return core::InvalidArgument(
      "NOTATION_MISSING",
      "the program has no source, wanted statements, einsum or ncon");
}

absl::StatusOr<core::PathMethod> MethodFrom(v1::PathMethod method) {
  switch (method) {
    case v1::PATH_METHOD_UNSPECIFIED:
    case v1::PATH_METHOD_AUTO: return core::PathMethod::kAuto;
    case v1::PATH_METHOD_OPTIMAL: return core::PathMethod::kOptimal;
    case v1::PATH_METHOD_GREEDY: return core::PathMethod::kGreedy;
    case v1::PATH_METHOD_RANDOM_GREEDY: return core::PathMethod::kRandomGreedy;
    case v1::PATH_METHOD_PARTITION: return core::PathMethod::kPartition;
    default: return UnknownEnum("path.method", method);
  }
}

std::vector<std::vector<int64_t>> StepsFrom(
    const google::protobuf::RepeatedPtrField<v1::PathStep>& steps) {
  std::vector<std::vector<int64_t>> all;
  for (const v1::PathStep& step : steps) {
    all.emplace_back(step.positions().begin(), step.positions().end());
  }
  return all;
}

absl::Status TakePath(const v1::PathOptions& path,
                      server::ProgramOptions& options) {
  TENSORD_ASSIGN_OR_RETURN(options.method, MethodFrom(path.method()));
  if (path.has_time_budget()) {
    TENSORD_ASSIGN_OR_RETURN(options.time_budget,
                             FromProto(path.time_budget(), "path.time_budget"));
    if (options.time_budget < absl::ZeroDuration() ||
        options.time_budget > server::kMaxTimeBudget) {
      return core::InvalidArgument(
          "TIME_BUDGET_OUT_OF_RANGE", "path.time_budget is ",
          absl::FormatDuration(options.time_budget), ", wanted 0 to ",
          absl::FormatDuration(server::kMaxTimeBudget));
    }
  }
  options.given_path = StepsFrom(path.steps());
  options.start.steps = StepsFrom(path.start().steps());
  options.start.sliced.assign(path.start().sliced().begin(),
                              path.start().sliced().end());
  if (!options.given_path.empty() && path.has_start()) {
    return core::InvalidArgument("PATH_MALFORMED",
                                 "path has steps and a start, wanted one of "
                                 "them: steps are not searched");
  }
  if (path.has_memory_limit_bytes()) {
    if (path.memory_limit_bytes() < 0) {
      return core::InvalidArgument("MEMORY_LIMIT_NEGATIVE",
                                   "path.memory_limit_bytes is ",
                                   path.memory_limit_bytes(), ", wanted >= 0");
    }
    options.memory_limit_bytes = path.memory_limit_bytes();
  }
  options.seed = static_cast<uint64_t>(path.seed());
  if (path.has_costs()) options.costs = path.costs();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<server::ProgramOperandRequest>> FromProto(
    const google::protobuf::RepeatedPtrField<v1::ProgramOperand>& operands) {
  std::vector<server::ProgramOperandRequest> result;
  for (const v1::ProgramOperand& operand : operands) {
    server::ProgramOperandRequest& added = result.emplace_back();
    added.name = operand.name();
    added.is_constant = operand.constant();
    const std::string shown = operand.name().empty()
                                  ? absl::StrCat("operand ", result.size() - 1)
                                  : absl::StrCat("'", operand.name(), "'");
    switch (operand.source_case()) {
      case v1::ProgramOperand::kTensor: added.source = operand.tensor(); break;
      case v1::ProgramOperand::kInline: {
        TENSORD_ASSIGN_OR_RETURN(added.source,
                                 FromProto(operand.inline_(), shown));
        break;
      }
      case v1::ProgramOperand::kScalar:
        added.source = FromProto(operand.scalar());
        break;
      case v1::ProgramOperand::SOURCE_NOT_SET:
        return core::InvalidArgument(
            "OPERAND_EMPTY", shown,
            " has neither tensor nor inline data nor scalar");
    }
    TENSORD_ASSIGN_OR_RETURN(added.view,
                             ViewOf(operand, operand.has_tensor(), shown));
  }
  return result;
}

absl::StatusOr<std::vector<server::ProgramOutputRequest>> FromProto(
    const google::protobuf::RepeatedPtrField<v1::ProgramOutput>& outputs) {
  std::vector<server::ProgramOutputRequest> result;
  for (const v1::ProgramOutput& output : outputs) {
    server::ProgramOutputRequest& added = result.emplace_back();
    added.name = output.name();
    added.tensor_id = output.tensor_id();
    added.is_inline = output.inline_();
    if (added.is_inline && !added.tensor_id.empty()) {
      return core::InvalidArgument("OUTPUT_AMBIGUOUS", "output '", added.name,
                                   "' is inline and has the tensor_id '",
                                   added.tensor_id, "', wanted one of both");
    }
    if (output.element_type() != v1::ELEMENT_TYPE_UNSPECIFIED) {
      TENSORD_ASSIGN_OR_RETURN(added.element_type,
                               FromProto(output.element_type()));
    }
    if (output.order() != v1::ORDER_UNSPECIFIED) {
      TENSORD_ASSIGN_OR_RETURN(added.order, FromProto(output.order()));
    }
  }
  return result;
}

absl::StatusOr<server::ProgramRequest> FromProto(const v1::ProgramSpec& spec) {
  server::ProgramRequest result;
  TENSORD_ASSIGN_OR_RETURN(result.source, SourceFrom(spec.source()));
  TENSORD_ASSIGN_OR_RETURN(result.operands, FromProto(spec.operands()));
  TENSORD_ASSIGN_OR_RETURN(result.outputs, FromProto(spec.outputs()));
  server::ProgramOptions& options = result.options;
  TENSORD_ASSIGN_OR_RETURN(options.order, FromProto(spec.order()));
  TENSORD_RETURN_IF_ERROR(TakePath(spec.path(), options));
  TENSORD_ASSIGN_OR_RETURN(options.compute_type,
                           FromProto(spec.compute_type()));
  if (spec.has_workspace_limit_bytes()) {
    TENSORD_ASSIGN_OR_RETURN(options.workspace_limit_bytes,
                             WorkspaceLimit(spec.workspace_limit_bytes()));
  }
  options.deterministic = spec.deterministic();
  TENSORD_ASSIGN_OR_RETURN(options.selection, FromProto(spec.selection()));
  TENSORD_RETURN_IF_ERROR(
      CheckSelection(options.selection, options.deterministic));
  return result;
}

v1::ProgramSource ToProto(const server::ProgramSource& source) {
  v1::ProgramSource message;
  if (const auto* statements = std::get_if<std::string>(&source)) {
    message.set_statements(*statements);
  } else if (const auto* einsum = std::get_if<server::EinsumText>(&source)) {
    message.set_einsum(einsum->subscripts);
  } else {
    const auto& ncon = std::get<server::NconText>(source);
    v1::Ncon& to = *message.mutable_ncon();
    for (const std::vector<int64_t>& labels : ncon.labels) {
      to.add_operands()->mutable_labels()->Add(labels.begin(), labels.end());
    }
    to.mutable_order()->Add(ncon.order.begin(), ncon.order.end());
    to.mutable_output()->Add(ncon.output.begin(), ncon.output.end());
  }
  return message;
}

}  // namespace tensord::rpc
