#include "server/session/program/prepared_program.h"

#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/notation/parse_einsum.h"
#include "core/notation/parse_program.h"

namespace tensord::server {
namespace {

core::NamedOutput OutputOf(const ProgramOutputRequest& output,
                           core::Order order) {
  return {output.name, output.element_type, output.order.value_or(order)};
}

std::vector<int> ModeCounts(absl::Span<const core::NamedOperand> operands) {
  std::vector<int> counts;
  for (const core::NamedOperand& operand : operands) {
    counts.push_back(operand.layout.mode_count());
  }
  return counts;
}

absl::StatusOr<core::Program> LowerProduct(
    const core::EinsumSyntax& syntax,
    absl::Span<const core::NamedOperand> operands,
    absl::Span<const ProgramOutputRequest> outputs,
    const core::LoweringOptions& options) {
  if (outputs.size() > 1) {
    return core::InvalidArgument("OUTPUT_UNKNOWN", outputs.size(),
                                 " outputs are asked for of a single product, "
                                 "wanted one or none");
  }
  core::NamedOutput output{"result", std::nullopt, options.order};
  if (!outputs.empty()) {
    output = OutputOf(outputs[0], options.order);
    if (output.name.empty()) output.name = "result";
  }
  return core::LowerEinsum(syntax, operands, output, options);
}

absl::StatusOr<core::Program> Lower(
    const ProgramSource& source, absl::Span<const core::NamedOperand> operands,
    absl::Span<const ProgramOutputRequest> outputs,
    const core::LoweringOptions& options) {
  if (const auto* einsum = std::get_if<EinsumText>(&source)) {
    TENSORD_ASSIGN_OR_RETURN(
        const core::EinsumSyntax syntax,
        core::ParseEinsum(einsum->subscripts, ModeCounts(operands)));
    return LowerProduct(syntax, operands, outputs, options);
  }
  if (const auto* ncon = std::get_if<NconText>(&source)) {
    TENSORD_ASSIGN_OR_RETURN(
        const core::EinsumSyntax syntax,
        core::ParseNcon(ncon->labels, ncon->order, ncon->output,
                        ModeCounts(operands)));
    return LowerProduct(syntax, operands, outputs, options);
  }
  TENSORD_ASSIGN_OR_RETURN(const core::ProgramSyntax syntax,
                           core::ParseProgram(std::get<std::string>(source)));
  std::vector<core::NamedOutput> kept;
  for (const ProgramOutputRequest& output : outputs) {
    kept.push_back(OutputOf(output, options.order));
  }
  return core::LowerProgram(syntax, operands, kept, options);
}

}  // namespace

absl::StatusOr<std::shared_ptr<PreparedProgram>> PreparedProgram::Make(
    const ProgramSource& source, std::vector<core::NamedOperand> operands,
    absl::Span<const ProgramOutputRequest> outputs,
    const ProgramOptions& options, const Device& device) {
  return Make(source, std::move(operands), outputs, options, device, nullptr);
}

absl::StatusOr<std::shared_ptr<PreparedProgram>> PreparedProgram::WithOperands(
    std::vector<core::NamedOperand> operands, const Device& device) const {
  TENSORD_ASSIGN_OR_RETURN(std::shared_ptr<PreparedProgram> changed,
                           Make(source_, std::move(operands), outputs_,
                                options_, device, &program_));
  changed->execution_count_ = execution_count_;
  return changed;
}

absl::StatusOr<std::shared_ptr<PreparedProgram>> PreparedProgram::Make(
    const ProgramSource& source, std::vector<core::NamedOperand> operands,
    absl::Span<const ProgramOutputRequest> outputs,
    const ProgramOptions& options, const Device& device,
    const core::Program* like) {
  core::LoweringOptions lowering;
  lowering.path.method = options.method;
  lowering.path.time_budget = options.time_budget;
  lowering.path.seed = options.seed;
  lowering.given_path = options.given_path;
  lowering.memory_limit_bytes = options.memory_limit_bytes;
  lowering.order = options.order;
  lowering.compute_type = options.compute_type;
  lowering.like = like;
  std::shared_ptr<PreparedProgram> made(new PreparedProgram);
  PreparedProgram& prepared = *made;
  TENSORD_ASSIGN_OR_RETURN(prepared.program_,
                           Lower(source, operands, outputs, lowering));
  prepared.source_ = source;
  prepared.operands_ = std::move(operands);
  prepared.outputs_.assign(outputs.begin(), outputs.end());
  prepared.options_ = options;
  absl::flat_hash_map<core::PlanKey, int32_t> known;
  for (const core::ProgramBlock& block : prepared.program_.blocks) {
    std::vector<int32_t>& numbers = prepared.key_of_.emplace_back();
    for (const core::ProgramStep& step : block.steps) {
      core::PlanKey key{.problem = std::visit(
                            [](const auto& desc) -> core::AnyProblem {
                              return core::Canonicalize(desc);
                            },
                            step.desc),
                        .device = device.plan_device(),
                        .workspace_limit_bytes = options.workspace_limit_bytes,
                        .kernel = "",
                        .deterministic = options.deterministic,
                        .selection = core::Selection::kHeuristic};
      const auto [at, is_new] = known.try_emplace(
          std::move(key), static_cast<int32_t>(prepared.keys_.size()));
      if (is_new) prepared.keys_.push_back(at->first);
      numbers.push_back(at->second);
    }
  }
  return made;
}

}  // namespace tensord::server
