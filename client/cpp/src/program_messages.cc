#include "client/cpp/src/program_messages.h"

#include <string>
#include <utility>

#include "client/cpp/src/convert.h"
#include "client/cpp/src/errors.h"

namespace tensord::internal {
namespace {

using internal::FromProto;
using internal::ToProto;

static_assert(static_cast<int>(PathMethod::kPartition) ==
              v1::PATH_METHOD_PARTITION);

v1::ProgramSource ToProto(const ProgramSource& source) {
  v1::ProgramSource message;
  if (const auto* text = std::get_if<std::string>(&source.notation)) {
    message.set_statements(*text);
  } else if (const auto* einsum = std::get_if<EinsumText>(&source.notation)) {
    message.set_einsum(einsum->subscripts);
  } else {
    const auto& ncon = std::get<NconLabels>(source.notation);
    v1::Ncon& to = *message.mutable_ncon();
    for (const std::vector<int64_t>& labels : ncon.labels) {
      to.add_operands()->mutable_labels()->Add(labels.begin(), labels.end());
    }
    to.mutable_order()->Add(ncon.order.begin(), ncon.order.end());
    to.mutable_output()->Add(ncon.output.begin(), ncon.output.end());
  }
  return message;
}

ProgramSource FromProto(const v1::ProgramSource& source) {
  switch (source.notation_case()) {
    case v1::ProgramSource::kEinsum: return EinsumText{source.einsum()};
    case v1::ProgramSource::kNcon: break;
    default: return source.statements();
  }
  NconLabels ncon;
  for (const v1::NconLabels& labels : source.ncon().operands()) {
    ncon.labels.emplace_back(labels.labels().begin(), labels.labels().end());
  }
  ncon.order.assign(source.ncon().order().begin(), source.ncon().order().end());
  ncon.output.assign(source.ncon().output().begin(),
                     source.ncon().output().end());
  return ncon;
}

void AddSteps(const std::vector<std::vector<int64_t>>& steps,
              google::protobuf::RepeatedPtrField<v1::PathStep>& to) {
  for (const std::vector<int64_t>& positions : steps) {
    to.Add()->mutable_positions()->Add(positions.begin(), positions.end());
  }
}

v1::PathOptions ToProto(const PathOptions& path) {
  v1::PathOptions message;
  message.set_method(static_cast<v1::PathMethod>(path.method));
  if (path.time_budget) {
    *message.mutable_time_budget() = ToProto(*path.time_budget);
  }
  AddSteps(path.steps, *message.mutable_steps());
  if (path.start) {
    v1::PathStart& start = *message.mutable_start();
    AddSteps(path.start->steps, *start.mutable_steps());
    start.mutable_sliced()->Add(path.start->sliced.begin(),
                                path.start->sliced.end());
  }
  if (path.memory_limit_bytes) {
    message.set_memory_limit_bytes(*path.memory_limit_bytes);
  }
  message.set_seed(path.seed);
  if (path.costs) message.set_costs(*path.costs);
  return message;
}

Layout FromProto(const v1::Layout& layout) {
  return {.extents = {layout.extents().begin(), layout.extents().end()},
          .strides = {layout.strides().begin(), layout.strides().end()}};
}

ProgramTensor FromProto(const v1::ProgramTensor& message) {
  ProgramTensor tensor{
      .name = message.name(),
      .element_type = static_cast<ElementType>(message.element_type()),
      .layout = FromProto(message.layout()),
      .scalar = {},
      .is_written = message.is_written(),
      .is_constant = message.is_constant()};
  if (message.has_scalar()) {
    tensor.scalar =
        Scalar(message.scalar().real(), message.scalar().imaginary());
  }
  return tensor;
}

ProgramProduct FromProto(const v1::ProgramProduct& message) {
  ProgramProduct product{
      .statement = message.statement(),
      .nodes = {},
      .sliced = {message.sliced().begin(), message.sliced().end()},
      .slice_count = message.slice_count(),
      .method = message.method(),
      .flops = message.flops(),
      .largest = message.largest(),
      .symbolic_cost = message.symbolic_cost()};
  for (const v1::TreeNode& node : message.nodes()) {
    product.nodes.push_back(
        {.name = node.name(),
         .labels = {node.labels().begin(), node.labels().end()},
         .extents = {node.extents().begin(), node.extents().end()},
         .children = {node.children().begin(), node.children().end()},
         .flops = node.flops()});
  }
  return product;
}

}  // namespace

absl::Status AddOperands(ProgramOperands operands, Contents contents,
                         ProgramOperandMessages& to) {
  for (const ProgramOperand& operand : operands) {
    v1::ProgramOperand& message = *to.Add();
    message.set_name(operand.name);
    message.set_constant(operand.is_constant);
    const auto& source = operand.value.source;
    if (const auto* remote = std::get_if<const RemoteTensor*>(&source)) {
      message.set_tensor((*remote)->name());
    } else if (const auto* scalar = std::get_if<Scalar>(&source)) {
      *message.mutable_scalar() = ToProto(*scalar);
    } else {
      const auto& view = std::get<UntypedHostView>(source);
      v1::InlineTensor& tensor = *message.mutable_inline_();
      tensor.set_element_type(static_cast<v1::ElementType>(view.element_type));
      *tensor.mutable_layout() = ToProto(view.layout);
      if (contents == Contents::kLeftOut) continue;
      const std::string what =
          operand.name.empty() ? absl::StrCat("operand ", to.size() - 1)
                               : absl::StrCat("operand '", operand.name, "'");
      TENSORD_CLIENT_ASSIGN_OR_RETURN(const auto bytes, BytesOf(view, what));
      tensor.set_data(bytes.data(), bytes.size());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::ProgramSpec> MakeSpec(const Connection& connection,
                                         const ProgramSource& source,
                                         ProgramOperands operands,
                                         const ProgramOptions& options,
                                         Contents contents) {
  v1::ProgramSpec spec;
  *spec.mutable_source() = ToProto(source);
  TENSORD_CLIENT_RETURN_IF_ERROR(
      AddOperands(operands, contents, *spec.mutable_operands()));
  for (const ProgramOutput& output : options.outputs) {
    *spec.add_outputs() = ToProto(output);
  }
  spec.set_order(
      static_cast<v1::Order>(options.order.value_or(connection.order())));
  *spec.mutable_path() = ToProto(options.path);
  spec.set_compute_type(static_cast<v1::ComputeType>(options.compute_type));
  if (options.workspace_limit_bytes) {
    spec.set_workspace_limit_bytes(*options.workspace_limit_bytes);
  }
  spec.set_deterministic(options.deterministic);
  spec.set_selection(static_cast<v1::Selection>(options.selection));
  return spec;
}

v1::ProgramOutput ToProto(const ProgramOutput& output) {
  v1::ProgramOutput message;
  message.set_name(output.name);
  message.set_tensor_id(output.tensor_name);
  message.set_element_type(static_cast<v1::ElementType>(output.element_type));
  if (output.order) message.set_order(static_cast<v1::Order>(*output.order));
  message.set_inline_(output.is_inline);
  return message;
}

ProgramReport FromProto(const v1::ProgramReport& report) {
  std::vector<KeptExtent> kept_extents;
  for (const v1::KeptExtent& kept : report.kept_extents()) {
    kept_extents.push_back({kept.statement(), kept.label(), kept.extent()});
  }
  return {.operation_count = report.operation_count(),
          .folded_operation_count = report.folded_operation_count(),
          .flops = report.flops(),
          .peak_bytes = report.peak_bytes(),
          .kept_bytes = report.kept_bytes(),
          .workspace_bytes = report.workspace_bytes(),
          .plan_cache_hits = report.plan_cache_hits(),
          .plan_count = report.plan_count(),
          .program_cache_hit = report.program_cache_hit(),
          .gathered_bytes = report.gathered_bytes(),
          .replayed = report.replayed(),
          .queued = FromProto(report.queued()),
          .executed = FromProto(report.executed()),
          .prepared = FromProto(report.prepared()),
          .kept_extents = std::move(kept_extents)};
}

ProgramExplanation FromProto(const v1::ProgramExplanation& message) {
  ProgramExplanation explanation{
      .operations = {},
      .products = {},
      .flops = message.flops(),
      .peak_bytes = message.peak_bytes(),
      .kept_bytes = message.kept_bytes(),
      .workspace_bytes = message.workspace_bytes(),
      .predicted_nanoseconds = message.predicted_nanoseconds(),
      .text = message.text()};
  for (const v1::ProgramOperation& operation : message.operations()) {
    explanation.operations.push_back(
        {.statement = operation.statement(),
         .operation = operation.operation(),
         .text = operation.text(),
         .kernel = operation.kernel(),
         .slice_count = operation.slice_count(),
         .flops = operation.flops(),
         .predicted_nanoseconds = operation.predicted_nanoseconds(),
         .workspace_bytes = operation.workspace_bytes(),
         .is_folded = operation.is_folded()});
  }
  for (const v1::ProgramProduct& product : message.products()) {
    explanation.products.push_back(FromProto(product));
  }
  return explanation;
}

ProgramInfo FromProto(const v1::Program& program) {
  ProgramInfo info{.name = program.name(),
                   .source = FromProto(program.source()),
                   .device = program.device(),
                   .operands = {},
                   .outputs = {},
                   .explanation = FromProto(program.explanation()),
                   .execution_count = program.execution_count()};
  for (const v1::ProgramTensor& operand : program.operands()) {
    info.operands.push_back(FromProto(operand));
  }
  for (const v1::ProgramTensor& output : program.outputs()) {
    info.outputs.push_back(FromProto(output));
  }
  return info;
}

}  // namespace tensord::internal
