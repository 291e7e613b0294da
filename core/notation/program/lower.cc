#include "core/notation/program/lower.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/status.h"
#include "core/notation/program/arena.h"
#include "core/notation/program/bind.h"
#include "core/notation/program/call_desc.h"
#include "core/notation/program/check_costs.h"
#include "core/notation/program/drop_unread.h"
#include "core/notation/program/emit.h"
#include "core/notation/program/fold_constants.h"
#include "core/notation/program/step_builder.h"
#include "core/notation/text_error.h"
#include "core/notation/to_text.h"

namespace tensord::core {
namespace {

using Place = ProgramTensor::Place;

/// How thriftily memory is used.
struct Thrift {
  double max_peak_bytes = std::numeric_limits<double>::infinity();
  bool keeps_values = true;
};

/// Adds the operands to `program`, and what they are called to `bindings`.
absl::Status AddOperands(absl::Span<const NamedOperand> operands,
                         Program& program, Bindings& bindings) {
  for (const NamedOperand& operand : operands) {
    if (bindings.Has(operand.name)) {
      return InvalidArgument("OPERAND_REPEATED", "operand '", operand.name,
                             "' is given twice");
    }
    program.operand_constant.push_back(operand.is_constant && !operand.scalar);
    if (operand.scalar) {
      bindings.SetScalar(operand.name, *operand.scalar);
      program.operands.push_back(-1);
      continue;
    }
    const auto tensor = static_cast<int32_t>(program.tensors.size());
    bindings.SetTensor(operand.name, tensor);
    program.operands.push_back(tensor);
    ProgramTensor& added = program.tensors.emplace_back();
    added.place = Place::kOperand;
    added.number = static_cast<int32_t>(program.operands.size()) - 1;
    added.name = operand.name;
    added.element_type = operand.element_type;
    added.layout = operand.layout;
    added.alignment_bytes = operand.alignment_bytes;
  }
  return absl::OkStatus();
}

/// True when a factor of `sum` is called `name`.
bool Mentions(const Sum& sum, absl::string_view name) {
  return std::ranges::any_of(sum.terms, [&](const Term& term) {
    return std::ranges::any_of(term.factors, [&](const Factor& factor) {
      for (const Sum& part : factor.parts()) {
        if (Mentions(part, name)) return true;
      }
      const auto* const reference = std::get_if<TensorReference>(&factor.value);
      return reference != nullptr && reference->name == name;
    });
  });
}

/// Where a statement writes to.
struct Target {
  size_t statement;
  const TensorReference* output;
  bool makes = false;                 // a tensor
  const NamedOutput* kept = nullptr;  // by the client, as what
};

/// All of them, in order. A tensor is made with `:=`, or with `=` when the name
/// has no brackets and stands for nothing.
std::vector<Target> FindTargets(const ProgramSyntax& syntax,
                                absl::Span<const NamedOperand> operands) {
  absl::flat_hash_set<absl::string_view> known;
  for (const NamedOperand& operand : operands) known.insert(operand.name);
  std::vector<Target> targets;
  for (size_t s = 0; s < syntax.statements.size(); ++s) {
    const Statement& statement = syntax.statements[s];
    for (const TensorReference* const output : statement.outputs()) {
      const bool makes =
          statement.assignment == Assignment::kCreate ||
          (statement.assignment == Assignment::kStore &&
           !output->has_brackets && !known.contains(output->name));
      if (makes) known.insert(output->name);
      targets.push_back({s, output, makes});
    }
  }
  return targets;
}

/// Says of those of `targets` that make a tensor which the client keeps.
absl::Status FindOutputs(absl::Span<const NamedOutput> wanted,
                         std::vector<Target>& targets) {
  for (const NamedOutput& output : wanted) {
    const auto last = std::find_if(
        targets.rbegin(), targets.rend(), [&](const Target& target) {
          return target.makes && target.output->name == output.name;
        });
    if (last == targets.rend()) {
      return InvalidArgument("OUTPUT_UNKNOWN", "output '", output.name,
                             "' is made by no statement, wanted one with "
                             "':='");
    }
    if (last->kept != nullptr) {
      return InvalidArgument("OUTPUT_REPEATED", "output '", output.name,
                             "' is asked for twice");
    }
    last->kept = &output;
  }
  return absl::OkStatus();
}

/// What is made and not read afterwards.
std::vector<NamedOutput> DefaultOutputs(const ProgramSyntax& syntax,
                                        absl::Span<const Target> targets,
                                        Order order) {
  std::vector<NamedOutput> outputs;
  for (const Target& target : targets) {
    if (!target.makes) continue;
    const std::string& name = target.output->name;
    bool is_used = std::ranges::any_of(targets, [&](const Target& other) {
      return other.statement > target.statement && other.makes &&
             other.output->name == name;
    });
    for (size_t later = target.statement + 1;
         !is_used && later < syntax.statements.size(); ++later) {
      is_used = std::ranges::any_of(
          syntax.statements[later].parts(),
          [&](const Sum& part) { return Mentions(part, name); });
    }
    if (!is_used) outputs.push_back({name, std::nullopt, order});
  }
  return outputs;
}

/// Lowers statement by statement.
class Lowering {
 public:
  Lowering(const LoweringOptions& options, const Thrift& thrift)
      : options_(options),
        bindings_(program_),
        steps_(program_, bindings_, options.compute_type),
        emitter_(program_, bindings_, steps_, options, thrift.max_peak_bytes) {
    program_.keeps_values = thrift.keeps_values;
    if (!thrift.keeps_values) steps_.StopKeeping();
  }

  absl::Status Begin(absl::Span<const NamedOperand> operands) {
    return AddOperands(operands, program_, bindings_);
  }
  Bindings& bindings() { return bindings_; }

  /// A statement that writes to `targets`.
  absl::Status Lower(const Statement& statement,
                     absl::Span<const Target> targets) {
    if (statement.call) return LowerCall(statement, targets);
    TENSORD_ASSIGN_OR_RETURN(Bindings::Bound bound, bindings_.Bind(statement));
    emitter_.BeginStatement(static_cast<int32_t>(targets[0].statement));
    if (targets[0].makes) {
      return Create(statement.output.name, bound, targets[0].kept);
    }
    TENSORD_ASSIGN_OR_RETURN(const int32_t tensor,
                             FindWritten(statement.output, bound.output));
    const bool is_store = statement.assignment == Assignment::kStore;
    const bool is_subtracted = statement.assignment == Assignment::kSubtract;
    return Write(bindings_.Indexed(tensor, bound.output), bound.sum,
                 is_subtracted ? Scalar{-1, 0} : kOne, is_store ? kZero : kOne);
  }

  /// Makes the tensor `name` of what is bound, and lets it be called so.
  absl::Status Create(const std::string& name, const Bindings::Bound& bound,
                      const NamedOutput* output) {
    TENSORD_ASSIGN_OR_RETURN(
        const int32_t tensor,
        MakeTensor(name, bound.sum.element_type, bound.output, output));
    TENSORD_RETURN_IF_ERROR(emitter_.Evaluate(
        bindings_.Indexed(tensor, bound.output), bound.sum, kOne, kZero));
    bindings_.SetTensor(name, tensor);
    return absl::OkStatus();
  }

  absl::StatusOr<Program> Finish() && {
    DropUnread(program_);
    NumberKeptExtents();
    TENSORD_RETURN_IF_ERROR(FoldConstants(program_));
    FindReads();
    TENSORD_RETURN_IF_ERROR(AssignArena(program_, options_.ample_bytes));
    return std::move(program_);
  }

 private:
  absl::Status LowerCall(const Statement& statement,
                         absl::Span<const Target> targets) {
    const StatementCall& call = *statement.call;
    TENSORD_ASSIGN_OR_RETURN(const BoundStatementCall bound,
                             bindings_.BindCall(statement));
    emitter_.BeginStatement(static_cast<int32_t>(targets[0].statement));
    std::vector<int32_t> tensors(targets.size(), -1);  // (result)
    for (size_t i = 0; i < targets.size(); ++i) {
      if (targets[i].makes) continue;
      TENSORD_ASSIGN_OR_RETURN(
          tensors[i], FindWritten(*targets[i].output, bound.outputs[i]));
    }
    TENSORD_RETURN_IF_ERROR(SetResultExtents(call, bound, bindings_));
    for (size_t i = 0; i < targets.size(); ++i) {
      if (!targets[i].makes) continue;
      TENSORD_ASSIGN_OR_RETURN(
          tensors[i],
          MakeTensor(targets[i].output->name, ResultTypeOf(call, bound, i),
                     bound.outputs[i], targets[i].kept));
    }
    TENSORD_RETURN_IF_ERROR(Compute(call, bound, tensors));
    for (size_t i = 0; i < targets.size(); ++i) {
      if (!targets[i].makes) continue;
      bindings_.SetTensor(targets[i].output->name, tensors[i]);
    }
    return absl::OkStatus();
  }

  /// The call's results, into `tensors`.
  absl::Status Compute(const StatementCall& call,
                       const BoundStatementCall& bound,
                       const std::vector<int32_t>& tensors) {
    const ElementType argument_type = ArgumentTypeOf(call, bound);
    std::vector<IndexedTensor> inputs, outputs;
    std::vector<OperandDesc> input_descs, output_descs;
    for (size_t i = 0; i < bound.arguments.size(); ++i) {
      const Modes order(bound.inputs[i].begin(), bound.inputs[i].end());
      TENSORD_ASSIGN_OR_RETURN(
          IndexedTensor input,
          emitter_.ValueOf(bound.arguments[i], argument_type, order));
      if (std::ranges::find(tensors, input.tensor) != tensors.end()) {
        TENSORD_ASSIGN_OR_RETURN(input, steps_.Copy(input));
      }
      input_descs.push_back(steps_.DescOf(input, ArgumentModesOf(bound, i)));
      inputs.push_back(std::move(input));
    }
    std::vector<std::pair<IndexedTensor, IndexedTensor>> converted;
    for (size_t i = 0; i < tensors.size(); ++i) {
      IndexedTensor output = bindings_.Indexed(tensors[i], bound.outputs[i]);
      const ElementType type = ResultTypeOf(call, bound, i);
      if (steps_.TypeOf(output) != type) {
        converted.emplace_back(output,
                               steps_.MakeTemporary(type, output.indices));
        output = converted.back().second;
      }
      output_descs.push_back(steps_.DescOf(output, ResultModesOf(bound, i)));
      outputs.push_back(std::move(output));
    }
    TENSORD_ASSIGN_OR_RETURN(AnyDesc desc, CallDescOf(call, bound, input_descs,
                                                      output_descs, bindings_));
    TENSORD_RETURN_IF_ERROR(
        steps_.AddCallStep(std::move(desc), inputs, outputs, bound.truncation,
                           StepPlace{call.position, RolesOf(call)}));
    for (const auto& [output, value] : converted) {
      const absl::Status added = steps_.Add(output, {{kOne, value}}, kZero);
      if (!added.ok()) return PlacedAt(call.position, added);
    }
    return absl::OkStatus();
  }

  /// The tensor that a statement writes to, whose modes are these indices.
  absl::StatusOr<int32_t> FindWritten(const TensorReference& output,
                                      absl::Span<const Mode> indices) {
    TENSORD_ASSIGN_OR_RETURN(const int32_t tensor,
                             bindings_.FindTensor(output));
    TENSORD_RETURN_IF_ERROR(bindings_.CheckOutput(output, tensor, indices));
    const ProgramTensor& written = program_.tensors[tensor];
    if (written.place == Place::kOperand &&
        program_.operand_constant[written.number]) {
      return ErrorAt(output.position, "CONSTANT_WRITTEN", "operand '",
                     written.name,
                     "' is constant, but this statement writes it");
    }
    return tensor;
  }

  /// A tensor by that name, or of the type and order of `output`.
  absl::StatusOr<int32_t> MakeTensor(const std::string& name, ElementType type,
                                     absl::Span<const Mode> indices,
                                     const NamedOutput* output) {
    const auto tensor = static_cast<int32_t>(program_.tensors.size());
    ProgramTensor added;
    added.name = name;
    added.element_type = type;
    Order order = options_.order;
    if (output != nullptr) {
      added.place = Place::kOutput;
      added.number = static_cast<int32_t>(program_.outputs.size());
      added.element_type = output->element_type.value_or(type);
      order = output->order;
      program_.outputs.push_back(tensor);
    }
    ModeVector extents;
    for (const Mode index : indices) {
      extents.push_back(bindings_.extent(index));
    }
    added.layout = PackedLayout(extents, order);
    TENSORD_RETURN_IF_ERROR(
        ValidateLayout(added.layout, SizeOf(added.element_type), name));
    program_.tensors.push_back(std::move(added));
    return tensor;
  }

  /// Tells of which SVDs an execution says how many values are kept.
  void NumberKeptExtents() {
    for (ProgramBlock& block : program_.blocks) {
      for (ProgramStep& step : block.steps) {
        const auto* const desc = std::get_if<FactorizationDesc>(&step.desc);
        if (desc == nullptr || desc->method != FactorizationMethod::kSvd) {
          continue;
        }
        const auto inner = std::ranges::find_if(
            desc->left.modes,
            [&](Mode mode) { return !Has(desc->a.modes, mode); });
        step.kept = static_cast<int32_t>(program_.kept_extents.size());
        program_.kept_extents.push_back(
            {step.statement, bindings_.name(*inner)});
      }
    }
  }

  /// d = beta * d + factor * sum, which may read d as it was before.
  absl::Status Write(const IndexedTensor& d, BoundSum& sum, Scalar factor,
                     Scalar beta) {
    if (beta.IsZero() && factor.IsOne() && Emitter::IsInPlace(d, sum)) {
      return emitter_.Evaluate(d, sum, factor, beta);
    }
    if (sum.Reads(d.tensor)) {
      // Terms that are d itself are part of what is kept of it.
      Scalar kept = beta;
      std::vector<BoundTerm> others;
      for (BoundTerm& term : sum.terms) {
        if (IsItself(term, d)) {
          const Scalar times = Times(term.coefficient, factor);
          kept = {kept.real + times.real, kept.imaginary + times.imaginary};
        } else {
          others.push_back(std::move(term));
        }
      }
      sum.terms = std::move(others);
      beta = kept;
    }
    if (sum.terms.empty()) {
      return steps_.Add(d, {{kZero, d}}, beta);
    }
    if (!sum.Reads(d.tensor)) {
      return emitter_.Evaluate(d, sum, factor, beta);
    }
    const IndexedTensor value =
        steps_.MakeTemporary(sum.element_type, d.indices);
    TENSORD_RETURN_IF_ERROR(emitter_.Evaluate(value, sum, factor, kZero));
    return steps_.Add(d, {{kOne, value}}, beta);
  }

  static bool IsItself(const BoundTerm& term, const IndexedTensor& d) {
    if (term.factors.size() != 1 || term.factors[0].is_computed() ||
        term.factors[0].is_divisor || !term.same.empty()) {
      return false;
    }
    const IndexedTensor& tensor = term.factors[0].tensor;
    return tensor.tensor == d.tensor && tensor.indices == d.indices &&
           !tensor.is_conjugated;
  }

  /// Which operands have to have contents, and which are written.
  void FindReads() {
    program_.operand_read.assign(program_.operands.size(), false);
    program_.operand_written.assign(program_.operands.size(), false);
    for (const ProgramBlock& block : program_.blocks) {
      for (const ProgramStep& step : block.steps) {
        const auto read = [&](const StepOperand& operand, bool is_read) {
          if (operand.tensor < 0 || !is_read) return;
          const ProgramTensor& tensor = program_.tensors[operand.tensor];
          if (tensor.place != Place::kOperand) return;
          if (!program_.operand_written[tensor.number]) {
            program_.operand_read[tensor.number] = true;
          }
        };
        const bool alpha = !step.alpha.IsZero(), beta = !step.beta.IsZero(),
                   gamma = !step.gamma.IsZero();
        const bool is_elementwise =
            std::holds_alternative<ElementwiseDesc>(step.desc);
        read(step.a, alpha);
        read(step.b, is_elementwise ? beta : alpha);
        read(step.c, is_elementwise ? gamma : beta);
        for (const StepOperand* const output : step.outputs()) {
          const ProgramTensor& d = program_.tensors[output->tensor];
          if (d.place != Place::kOperand) continue;
          program_.operand_written[d.number] = true;
        }
      }
    }
  }

  const LoweringOptions& options_;
  Program program_;
  Bindings bindings_;
  StepBuilder steps_;
  Emitter emitter_;
};

/// The program on `operands` that `add` adds all to, with as much thrift as the
/// limit asks for.
template <typename Add>
absl::StatusOr<Program> LowerWithinLimit(
    absl::Span<const NamedOperand> operands, LoweringOptions options, Add add) {
  options.ample_bytes =
      std::min(options.ample_bytes,
               options.memory_limit_bytes.value_or(options.ample_bytes));
  if (options.path.time_budget > absl::ZeroDuration()) {
    options.search_ends = absl::Now() + options.path.time_budget;
  }
  TENSORD_RETURN_IF_ERROR(CheckCosts(options));
  const auto lower = [&](const Thrift& thrift) -> absl::StatusOr<Program> {
    Lowering lowering(options, thrift);
    TENSORD_RETURN_IF_ERROR(lowering.Begin(operands));
    TENSORD_RETURN_IF_ERROR(add(lowering));
    TENSORD_ASSIGN_OR_RETURN(Program program, std::move(lowering).Finish());
    TENSORD_RETURN_IF_ERROR(CheckCostLabels(options, program.index_names));
    return program;
  };
  Thrift thrift;
  if (options.like != nullptr) {
    thrift.keeps_values = options.like->keeps_values;
    TENSORD_ASSIGN_OR_RETURN(Program program, lower(thrift));
    const int64_t limit = options.memory_limit_bytes.value_or(
        std::numeric_limits<int64_t>::max());
    if (program.arena_bytes <= limit) return program;
    // With other scalars other values occur again.
    options.like = nullptr;
    thrift.keeps_values = true;
  }
  if (!options.memory_limit_bytes) return lower(thrift);
  const int64_t limit = *options.memory_limit_bytes;
  thrift.max_peak_bytes = static_cast<double>(limit);
  int64_t least = std::numeric_limits<int64_t>::max();
  // Products are sliced to less than the limit when other intermediate results
  // need their part of it: between what slicing cannot do and what is too much.
  double refused = 0, too_much = thrift.max_peak_bytes;
  constexpr int kMostAttempts = 16;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    absl::StatusOr<Program> program = lower(thrift);
    if (!program.ok()) {
      if (attempt == 0 || ReasonOf(program.status()) != "PATH_MEMORY_LIMIT") {
        return program;
      }
      refused = thrift.max_peak_bytes;
    } else if (program->arena_bytes <= limit) {
      return program;
    } else {
      least = std::min(least, program->arena_bytes);
      if (std::exchange(thrift.keeps_values, false)) continue;
      too_much = thrift.max_peak_bytes;
    }
    thrift.max_peak_bytes = (refused + too_much) / 2;
    if (too_much - refused < 1) break;
  }
  return ResourceExhausted(
      "PATH_MEMORY_LIMIT", "the limit of ", limit,
      " bytes is too small for the intermediate results, which take ", least,
      " bytes at least with all slicing that was found");
}

}  // namespace

absl::StatusOr<Program> LowerProgram(const ProgramSyntax& syntax,
                                     absl::Span<const NamedOperand> operands,
                                     absl::Span<const NamedOutput> outputs,
                                     const LoweringOptions& options) {
  if (!options.given_path.empty() || !options.start.steps.empty()) {
    return InvalidArgument("PATH_MALFORMED",
                           "a path is given for statements, wanted one for a "
                           "single product; parentheses order statements");
  }
  std::vector<Target> targets = FindTargets(syntax, operands);
  const std::vector<NamedOutput> by_default =
      DefaultOutputs(syntax, targets, options.order);
  TENSORD_RETURN_IF_ERROR(FindOutputs(
      outputs.empty() ? absl::MakeConstSpan(by_default) : outputs, targets));
  return LowerWithinLimit(
      operands, options, [&](Lowering& lowering) -> absl::Status {
        absl::Span<const Target> rest(targets);
        for (const Statement& statement : syntax.statements) {
          const size_t count = 1 + statement.others.size();
          TENSORD_RETURN_IF_ERROR(lowering.Lower(statement, rest.first(count)));
          rest.remove_prefix(count);
        }
        return absl::OkStatus();
      });
}

absl::StatusOr<Program> LowerEinsum(const EinsumSyntax& syntax,
                                    absl::Span<const NamedOperand> operands,
                                    const NamedOutput& output,
                                    const LoweringOptions& options) {
  for (const NamedOperand& operand : operands) {
    if (operand.scalar) {
      return InvalidArgument("NAME_IS_SCALAR", operand.name,
                             " is a scalar, wanted a tensor; one without modes "
                             "will do");
    }
  }
  return LowerWithinLimit(
      operands, options, [&](Lowering& lowering) -> absl::Status {
        TENSORD_ASSIGN_OR_RETURN(const Bindings::Bound bound,
                                 lowering.bindings().Bind(syntax, operands));
        return lowering.Create(output.name, bound, &output);
      });
}

}  // namespace tensord::core
