#include "server/execution/program/prepared_program.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/notation/parse_einsum.h"
#include "core/notation/parse_program.h"
#include "core/notation/program/fold_constants.h"
#include "core/notation/syntax.h"
#include "server/execution/program/replays.h"

namespace tensord::server {
namespace {

// Small operations gain most when they run beside each other.
constexpr int64_t kAmpleBytes = int64_t{16} << 20;

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

void AddNames(const core::Sum& sum,
              absl::flat_hash_set<absl::string_view>& names) {
  for (const core::Term& term : sum.terms) {
    for (const core::Factor& factor : term.factors) {
      for (const core::Sum& part : factor.parts()) AddNames(part, names);
      if (const auto* const tensor =
              std::get_if<core::TensorReference>(&factor.value)) {
        names.insert(tensor->name);
      }
    }
  }
}

/// OK when there are statements, and they name each of the operands.
absl::Status CheckNamed(const core::ProgramSyntax& syntax,
                        absl::Span<const core::NamedOperand> operands) {
  if (syntax.statements.empty()) {
    return core::InvalidArgument("PROGRAM_EMPTY",
                                 "the program has no statement, wanted one, "
                                 "e.g. D[i,k] := A[i,j]*B[j,k]");
  }
  absl::flat_hash_set<absl::string_view> names;
  for (const core::Statement& statement : syntax.statements) {
    for (const core::TensorReference* const output : statement.outputs()) {
      names.insert(output->name);
    }
    for (const core::Sum& part : statement.parts()) AddNames(part, names);
    if (!statement.call) continue;
    for (const core::CallOption& option : statement.call->options) {
      const auto* const scalar = std::get_if<std::string>(&option.value);
      const bool is_label = statement.call->along.has_value();
      if (scalar != nullptr && !is_label) names.insert(*scalar);
    }
  }
  for (const core::NamedOperand& operand : operands) {
    if (names.contains(operand.name)) continue;
    return core::InvalidArgument("NAME_UNKNOWN", "the program has no operand '",
                                 operand.name, "'");
  }
  return absl::OkStatus();
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
  TENSORD_RETURN_IF_ERROR(CheckNamed(syntax, operands));
  std::vector<core::NamedOutput> kept;
  for (const ProgramOutputRequest& output : outputs) {
    kept.push_back(OutputOf(output, options.order));
  }
  return core::LowerProgram(syntax, operands, kept, options);
}

}  // namespace

PreparedProgram::PreparedProgram() : replays_(std::make_unique<Replays>()) {}

PreparedProgram::~PreparedProgram() = default;

absl::StatusOr<std::shared_ptr<PreparedProgram>> PreparedProgram::Make(
    const ProgramSource& source, std::vector<core::NamedOperand> operands,
    absl::Span<const ProgramOutputRequest> outputs,
    const ProgramOptions& options, const Device& device,
    const SearchControl& search) {
  return Make(source, std::move(operands), outputs, options, device, nullptr,
              search);
}

absl::StatusOr<std::shared_ptr<PreparedProgram>> PreparedProgram::WithOperands(
    std::vector<core::NamedOperand> operands, const Device& device,
    const SearchControl& search) const {
  TENSORD_ASSIGN_OR_RETURN(std::shared_ptr<PreparedProgram> changed,
                           Make(source_, std::move(operands), outputs_,
                                options_, device, &program_, search));
  changed->execution_count_ = execution_count_;
  changed->constants_ = constants_;
  if (kept_ != nullptr) {
    changed->kept_ = core::FoldAlike(program_, changed->program_)
                         ? kept_
                         : kept_->Sibling(changed->program_.kept_bytes);
  }
  return changed;
}

std::shared_ptr<PreparedProgram> PreparedProgram::Copy() const {
  std::shared_ptr<PreparedProgram> copy(new PreparedProgram);
  copy->source_ = source_;
  copy->operands_ = operands_;
  copy->outputs_ = outputs_;
  copy->options_ = options_;
  copy->program_ = program_;
  copy->keys_ = keys_;
  copy->key_of_ = key_of_;
  return copy;
}

std::shared_ptr<const PreparedProgram> PreparedProgram::WithScalars(
    absl::Span<const core::NamedOperand> operands) const {
  const auto has_them = [&](const PreparedProgram& program) {
    return std::ranges::equal(program.operands_, operands, {},
                              &core::NamedOperand::scalar,
                              &core::NamedOperand::scalar);
  };
  if (has_them(*this)) return shared_from_this();
  absl::MutexLock lock(&variant_mutex_);
  return variant_ != nullptr && has_them(*variant_) ? variant_ : nullptr;
}

void PreparedProgram::KeepVariant(
    std::shared_ptr<const PreparedProgram> variant) const {
  absl::MutexLock lock(&variant_mutex_);
  variant_ = std::move(variant);
}

int64_t PreparedProgram::size_bytes() const {
  constexpr int64_t kStepBytes = 1500;
  constexpr int64_t kOperandBytes = 300;
  constexpr int64_t kViewBytes = 4096;  // of a constant that is one
  int64_t bytes = kOperandBytes * std::ssize(operands_);
  for (size_t i = 0; i < operands_.size(); ++i) {
    const auto kept = constant(i);
    if (kept != nullptr && kept->view() != nullptr) bytes += kViewBytes;
  }
  if (const auto* text = std::get_if<std::string>(&source_)) {
    bytes += std::ssize(*text);
  } else if (const auto* einsum = std::get_if<EinsumText>(&source_)) {
    bytes += std::ssize(einsum->subscripts);
  }
  for (const core::ProgramBlock& block : program_.blocks) {
    bytes += kStepBytes * std::ssize(block.steps);
  }
  const bool has_scalars = std::ranges::any_of(
      operands_,
      [](const auto& operand) { return operand.scalar.has_value(); });
  return has_scalars ? 2 * bytes : bytes;
}

void PreparedProgram::SetConstants(
    std::vector<std::shared_ptr<StoredTensor>> constants,
    std::shared_ptr<core::MemoryResource> memory) {
  constants_ = std::move(constants);
  kept_ = std::make_shared<KeptValues>(std::move(memory), program_.kept_bytes);
}

absl::StatusOr<std::shared_ptr<PreparedProgram>> PreparedProgram::Make(
    const ProgramSource& source, std::vector<core::NamedOperand> operands,
    absl::Span<const ProgramOutputRequest> outputs,
    const ProgramOptions& options, const Device& device,
    const core::Program* like, const SearchControl& search) {
  core::LoweringOptions lowering;
  lowering.path.stop = search.stop;
  lowering.path.helper_nanoseconds = search.helper_nanoseconds;
  lowering.path.thread_count = std::max(1, device.info().thread_count);
  lowering.path.method = options.method;
  lowering.path.time_budget = options.time_budget;
  lowering.path.seed = options.seed;
  lowering.given_path = options.given_path;
  lowering.start = options.start;
  lowering.costs = options.costs;
  lowering.memory_limit_bytes = options.memory_limit_bytes;
  if (device.info().is_asynchronous) lowering.ample_bytes = kAmpleBytes;
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
                        .selection = options.selection};
      const auto [at, is_new] = known.try_emplace(
          std::move(key), static_cast<int32_t>(prepared.keys_.size()));
      if (is_new) prepared.keys_.push_back(at->first);
      numbers.push_back(at->second);
    }
  }
  return made;
}

}  // namespace tensord::server
