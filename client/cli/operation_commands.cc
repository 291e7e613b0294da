// permute, reduce, contract, elementwise and solve on .npy files: upload, run,
// download.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/commands.h"
#include "client/cli/file_tensors.h"
#include "client/cli/indexed_file.h"
#include "client/cli/names.h"
#include "client/cli/options.h"
#include "client/cli/program_text.h"
#include "client/cpp/src/subscripts.h"

namespace tensord::cli {
namespace {

enum class OperationKind { kPermute, kReduce, kContract, kElementwise, kSolve };

/// What the command line asks for.
struct OperationArguments {
  OperationKind kind = OperationKind::kPermute;
  bool explain = false;  // instead of running
  std::string subscripts;
  /// Files, perhaps with an index, in the order of the terms.
  std::vector<std::string> inputs;
  std::string padding;  // of a permutation, `1:2,0:3`; empty: none
  Scalar padding_value = 0;
  std::string output;  // file; empty: the result is dropped
  Scalar alpha = 1;
  std::optional<Scalar> beta;  // absent: 1 for what there is, else 0
  Scalar gamma = 1;
  UnaryOperator unary_a = UnaryOperator::kIdentity;
  UnaryOperator unary_b = UnaryOperator::kIdentity;
  UnaryOperator unary_c = UnaryOperator::kIdentity;
  BinaryOperator op = BinaryOperator::kAdd;     // of a reduction; a, b with c
  BinaryOperator op_ab = BinaryOperator::kMul;  // element-wise, a with b
  MatrixStructure structure = MatrixStructure::kGeneral;  // of equations
  bool has_unit_diagonal = false;                         // of equations
  MatrixFunction function = MatrixFunction::kUnsaid;      // without b
  std::optional<std::string> along;  // of a reduction, a label
  Sorting sorting = Sorting::kNone;
  ExecutionOptions execution;
};

/// `ij,jk->ik` taken apart.
struct Subscripts {
  std::vector<Modes> terms;
  Modes output;
};

absl::StatusOr<Subscripts> Split(const OperationArguments& arguments) {
  const std::string& text = arguments.subscripts;
  absl::StatusOr<std::vector<std::vector<Modes>>> sides =
      internal::ParseSubscripts(text);
  if (!sides.ok()) return sides.status();
  if (sides->size() != 2 || (*sides)[1].size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is not of the form `terms->output`, e.g. ij->ji"));
  }
  Subscripts subscripts{std::move((*sides)[0]), std::move((*sides)[1][0])};
  const auto least = [&]() -> size_t {
    switch (arguments.kind) {
      case OperationKind::kContract:
      case OperationKind::kElementwise: return 2;
      default: return 1;
    }
  }();
  const size_t most = arguments.kind == OperationKind::kPermute ? 1 : least + 1;
  if (subscripts.terms.size() < least || subscripts.terms.size() > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' has ", subscripts.terms.size(), " terms, wanted ", least,
        most > least ? absl::StrCat(" or ", most) : ""));
  }
  if (subscripts.terms.size() != arguments.inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' has ", subscripts.terms.size(), " terms, but there are ",
        arguments.inputs.size(), " files"));
  }
  return subscripts;
}

/// The operands and options of a typed operation.
struct TypedOperation {
  std::vector<Operand> operands;  // a, [b,] [c]
  Modes d;
  PermuteOptions permute;
  ElementwiseOptions elementwise;
  ReduceOptions reduce;
  ContractOptions contract;
  SolveOptions solve;
};

TypedOperation Prepare(const OperationArguments& arguments,
                       const Subscripts& subscripts,
                       const std::vector<PlacedFile>& files,
                       std::optional<Along> along) {
  TypedOperation typed{.operands = {},
                       .d = subscripts.output,
                       .permute = {},
                       .elementwise = {},
                       .reduce = {},
                       .contract = {},
                       .solve = {}};
  for (size_t i = 0; i < files.size(); ++i) {
    typed.operands.emplace_back(files[i].tensor(), subscripts.terms[i]);
  }
  // Letters by place: two operands of an element-wise operation are a and c,
  // the last one of a reduction or contraction with an addend is c.
  std::vector<Operand>& operands = typed.operands;
  const bool elementwise = arguments.kind == OperationKind::kElementwise;
  const bool has_b = arguments.kind == OperationKind::kContract ||
                     arguments.kind == OperationKind::kSolve;
  const size_t input_count = has_b ? 2 : 1;
  const bool has_c = elementwise || operands.size() > input_count;
  operands[0].unary_operator = arguments.unary_a;
  if (operands.size() > (has_c ? 2u : 1u)) {
    operands[1].unary_operator = arguments.unary_b;
  }
  if (has_c) operands.back().unary_operator = arguments.unary_c;

  const Scalar alpha = arguments.alpha;
  const ExecutionOptions& execution = arguments.execution;
  typed.permute = {.alpha = alpha, .padding = {}, .execution = execution};
  typed.elementwise = {.alpha = alpha,
                       .beta = arguments.beta.value_or(1),
                       .gamma = arguments.gamma,
                       .execution = execution};
  // An addend that is given is added.
  const Scalar beta = arguments.beta.value_or(has_c ? 1.0 : 0.0);
  typed.reduce = {.alpha = alpha,
                  .beta = beta,
                  .c = {},
                  .along = along,
                  .execution = execution};
  typed.contract = {
      .alpha = alpha, .beta = beta, .c = {}, .execution = execution};
  typed.solve = {.structure = arguments.structure,
                 .has_unit_diagonal = arguments.has_unit_diagonal,
                 .execution = execution};
  if (has_c) typed.reduce.c = typed.contract.c = operands.back();
  return typed;
}

absl::StatusOr<RemoteTensor> Run(Session& session,
                                 const OperationArguments& arguments,
                                 const TypedOperation& typed) {
  const std::vector<Operand>& in = typed.operands;
  switch (arguments.kind) {
    case OperationKind::kReduce:
      return session.Reduce(arguments.op, in[0], typed.d, typed.reduce);
    case OperationKind::kContract:
      return session.Contract(in[0], in[1], typed.d, typed.contract);
    case OperationKind::kElementwise:
      if (in.size() == 2) {
        return session.Elementwise(in[0], arguments.op, in[1], typed.d,
                                   typed.elementwise);
      }
      return session.Elementwise(in[0], arguments.op_ab, in[1], arguments.op,
                                 in[2], typed.d, typed.elementwise);
    case OperationKind::kSolve:
      if (in.size() == 2) {
        return session.Solve(in[0], in[1], typed.d, typed.solve);
      }
      return arguments.function == MatrixFunction::kExponential
                 ? session.Expm(in[0], typed.d, typed.solve)
                 : session.Invert(in[0], typed.d, typed.solve);
    default: return session.Permute(in[0], typed.d, typed.permute);
  }
}

absl::StatusOr<Explanation> Explain(const Session& session,
                                    const OperationArguments& arguments,
                                    const TypedOperation& typed) {
  const std::vector<Operand>& in = typed.operands;
  switch (arguments.kind) {
    case OperationKind::kReduce:
      return session.ExplainReduce(arguments.op, in[0], typed.d, typed.reduce);
    case OperationKind::kContract:
      return session.ExplainContract(in[0], in[1], typed.d, typed.contract);
    case OperationKind::kElementwise:
      if (in.size() == 2) {
        return session.ExplainElementwise(in[0], arguments.op, in[1], typed.d,
                                          typed.elementwise);
      }
      return session.ExplainElementwise(in[0], arguments.op_ab, in[1],
                                        arguments.op, in[2], typed.d,
                                        typed.elementwise);
    case OperationKind::kSolve:
      if (in.size() == 2) {
        return session.ExplainSolve(in[0], in[1], typed.d, typed.solve);
      }
      return arguments.function == MatrixFunction::kExponential
                 ? session.ExplainExpm(in[0], typed.d, typed.solve)
                 : session.ExplainInvert(in[0], typed.d, typed.solve);
    default: return session.ExplainPermute(in[0], typed.d, typed.permute);
  }
}

int RunOperation(const CommandLine& line, const OperationArguments& arguments) {
  const absl::StatusOr<Subscripts> subscripts = Split(arguments);
  if (!subscripts.ok()) {
    return FailUsage(std::string(subscripts.status().message()));
  }
  if (arguments.function != MatrixFunction::kUnsaid &&
      arguments.inputs.size() == 2) {
    return FailUsage("--function is of a alone, but there are two files");
  }
  if (arguments.kind == OperationKind::kSolve && arguments.inputs.size() == 1 &&
      arguments.unary_b != UnaryOperator::kIdentity) {
    return FailUsage("--unary-b is given, but there is no b");
  }
  std::optional<Along> along;
  if (arguments.along) {
    const Modes label(*arguments.along);
    if (label.labels.size() != 1) {
      return FailUsage(absl::StrCat("--along is '", *arguments.along,
                                    "', wanted one label, e.g. j"));
    }
    along = Along{label.labels[0], arguments.sorting};
  }
  std::vector<InputFile> inputs;
  for (const std::string& argument : arguments.inputs) {
    std::optional<InputFile> input;
    const int opened = OpenInput(argument, input);
    if (opened != kOk) return opened;
    inputs.push_back(*std::move(input));
  }
  OutputPadding padding;
  if (!arguments.padding.empty()) {
    absl::StatusOr<OutputPadding> parsed = ParsePadding(arguments.padding);
    if (!parsed.ok()) return FailUsage(std::string(parsed.status().message()));
    padding = *std::move(parsed);
    padding.value = arguments.padding_value;
  }
  absl::StatusOr<Session> session =
      Session::Connect(line.address, line.session_options());
  if (!session.ok()) return Fail(session.status());

  const absl::Time start = absl::Now();
  std::vector<PlacedFile> files;
  for (const InputFile& input : inputs) {
    absl::StatusOr<PlacedFile> placed =
        Place(*session, input, /*contents=*/!arguments.explain);
    if (!placed.ok()) return Fail(placed.status());
    files.push_back(*std::move(placed));
  }
  const absl::Duration uploading = absl::Now() - start;

  TypedOperation typed = Prepare(arguments, *subscripts, files, along);
  typed.permute.padding = std::move(padding);
  if (arguments.explain) {
    return PrintExplanation(Explain(*session, arguments, typed));
  }
  const absl::StatusOr<RemoteTensor> result = Run(*session, arguments, typed);
  if (!result.ok()) return Fail(result.status());
  return Finish({{"result", &*result, arguments.output}}, uploading);
}

struct OperationHelp {
  OperationKind kind;
  const char* name;
  const char* description;
  const char* subscripts;
  int most_files;
};

constexpr OperationHelp kOperations[] = {
    {OperationKind::kPermute, "permute",
     "d = alpha * f(a), with a's modes in another order: tensorctl permute "
     "\"ijk->kij\" a.npy -o d.npy",
     "Modes of a and of the result, e.g. \"ijk->kij\"", 1},
    {OperationKind::kReduce, "reduce",
     "d = alpha * op(f(a)) + beta * f(c), over the modes that d lacks: "
     "tensorctl reduce \"ijk->j\" a.npy --op max; \"ij->ij\" a.npy --along j "
     "sums cumulatively",
     "Modes of a, perhaps c, and the result, e.g. \"ijk->j\"", 2},
    {OperationKind::kContract, "contract",
     "d = alpha * a * b + beta * c: tensorctl contract \"ik,kj->ij\" a.npy "
     "b.npy --alpha 2",
     "Modes of a, b, perhaps c, and the result, e.g. \"ik,kj->ij\"", 3},
    {OperationKind::kElementwise, "elementwise",
     "d = op(alpha * f(a), gamma * f(c)), or with three files d = op(op_ab("
     "alpha * f(a), beta * f(b)), gamma * f(c)): tensorctl elementwise "
     "\"ij,j->ij\" a.npy c.npy --op mul; \"zj,i->ij\" a.npy indices.npy "
     "--op take takes a at indices",
     "Modes of a, perhaps b, c, and the result, e.g. \"ij,j->ij\"", 3},
    {OperationKind::kSolve, "solve",
     "d of the equations a * d = b, or the inverse or exponential of a: "
     "tensorctl solve \"ij,ik->jk\" a.npy b.npy -o d.npy",
     "Modes of a, perhaps b, and the result, e.g. \"ij,ik->jk\": those of a "
     "and b alone are rows, those of a and d alone columns; of an inverse "
     "\"ij->jk\", of an exponential \"ij->ik\" or \"ij->ij\"",
     2},
};

void AddExecutionOptions(CLI::App& command, ExecutionOptions& execution) {
  AddCommonOptions(command, execution);
  AddChoice(command, "--output-type", execution.output_element_type,
            ElementTypeNames(), "Element type of the result");
}

void AddStructure(CLI::App& command, OperationArguments& operation) {
  AddChoice(command, "--structure", operation.structure, MatrixStructureNames(),
            "What is known of the matrix; of Hermitian ones the lower triangle "
            "is read");
  command.add_flag("--unit-diagonal", operation.has_unit_diagonal,
                   "The diagonal of the triangle is ones, and not read");
  AddChoice(command, "--function", operation.function, MatrixFunctionNames(),
            "What is computed without b");
  AddChoice(command, "--unary-a", operation.unary_a, UnaryOperatorNames(),
            "Applied to each element of a first, conj alone");
  AddChoice(command, "--unary-b", operation.unary_b, UnaryOperatorNames(),
            "Applied to each element of b first, conj alone");
}

void AddFactorsAndOperators(CLI::App& command, OperationKind kind,
                            OperationArguments& operation) {
  if (kind == OperationKind::kSolve) return AddStructure(command, operation);
  AddScalar(command, "--alpha", operation.alpha, "Factor of a");
  AddChoice(command, "--unary-a", operation.unary_a, UnaryOperatorNames(),
            "Applied to each element of a first");
  if (kind == OperationKind::kPermute) return;
  AddScalar(command, "--beta", operation.beta,
            kind == OperationKind::kElementwise
                ? "Factor of b"
                : "Factor of c, 1 unless given when there is a c");
  AddChoice(command, "--unary-c", operation.unary_c, UnaryOperatorNames(),
            "Applied to each element of c first");
  if (kind != OperationKind::kContract) {
    AddChoice(command, "--op", operation.op,
              kind == OperationKind::kReduce ? ReducingOperatorNames()
                                             : BinaryOperatorNames(),
              kind == OperationKind::kReduce
                  ? "How elements are brought together, add unless given"
                  : "Last operator, add unless given");
  }
  if (kind == OperationKind::kReduce) {
    CLI::Option* const along = command.add_option(
        "--along", operation.along,
        "Label along which elements are brought together with those before");
    AddChoice(command, "--sort", operation.sorting, SortingNames(),
              "Indices that sort along it, in place of --op")
        ->needs(along);
  } else {
    AddChoice(command, "--unary-b", operation.unary_b, UnaryOperatorNames(),
              "Applied to each element of b first");
  }
  if (kind == OperationKind::kElementwise) {
    AddScalar(command, "--gamma", operation.gamma, "Factor of c");
    AddChoice(command, "--op-ab", operation.op_ab, JoiningOperatorNames(),
              "Operator between a and b, mul unless given");
  }
}

void AddPadding(CLI::App& command, OperationArguments& operation) {
  CLI::Option* const pad =
      command.add_option("--pad", operation.padding,
                         "Padding around the result, BEFORE:AFTER for each "
                         "of its modes, e.g. 1:1,0:2");
  AddScalar(command, "--pad-value", operation.padding_value,
            "Value of padding, 0 unless given")
      ->needs(pad);
}

}  // namespace

void AddOperationCommands(CLI::App& app, bool explain, CommandLine& line) {
  for (const OperationHelp& help : kOperations) {
    const auto operation = std::make_shared<OperationArguments>();
    operation->kind = help.kind;
    operation->explain = explain;
    CLI::App* command = app.add_subcommand(help.name, help.description);
    command->add_option("subscripts", operation->subscripts, help.subscripts)
        ->required();
    command
        ->add_option("files", operation->inputs,
                     ".npy files, one for each term of the subscripts; an "
                     "index takes a part: 'a.npy[1:5, ::-1]'")
        ->required()
        ->expected(1, help.most_files);
    if (!explain) {
      AddOutput(*command, operation->output,
                ".npy file to write; without it the result is only described");
    }
    AddFactorsAndOperators(*command, help.kind, *operation);
    if (help.kind == OperationKind::kPermute) AddPadding(*command, *operation);
    AddExecutionOptions(*command, operation->execution);
    command->callback([&line, operation] {
      line.exit_code = RunOperation(line, *operation);
    });
  }
}

}  // namespace tensord::cli
