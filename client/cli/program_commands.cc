// einsum and run: whole programs on .npy files, upload, run, download.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/commands.h"
#include "client/cli/draw_trees.h"
#include "client/cli/file_tensors.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "client/cli/options.h"
#include "client/cli/program_text.h"
#include "client/cli/scalar.h"
#include "client/cli/text.h"
#include "client/cli/tree_search.h"

namespace tensord::cli {
namespace {

/// How an explanation is printed, if one is wanted instead of results.
enum class ExplainAs { kNothing, kText, kJson };

/// What `einsum` and `run` are both told.
struct ProgramArguments {
  bool only_explains = false;
  std::string explain_as;  // `text` or `json`; empty: results are wanted
  bool json = false;       // of what only explains
  std::string tree;        // file for orders, or pictures of them; may be empty
  ProgramOptions options;

  bool keeps_tree() const { return tree.ends_with(".json"); }

  ExplainAs explain() const {
    if (explain_as == "json" || json) return ExplainAs::kJson;
    const bool computes = explain_as.empty() && tree.empty() && !only_explains;
    return computes ? ExplainAs::kNothing : ExplainAs::kText;
  }
};

struct EinsumArguments {
  std::string subscripts;
  std::vector<std::string> inputs;  // files, perhaps with an index
  std::string output;               // file; empty: the result is dropped
  ElementType output_type = ElementType::kUnspecified;
  ProgramArguments program;
};

struct RunArguments {
  std::string source;  // a file, `-` or the statements themselves
  std::vector<std::string> operands;  // `A=a.npy`, `alpha=2.5`
  std::vector<std::string> outputs;   // `D=d.npy`
  ProgramArguments program;
};

/// A name of the program and the file or number behind it.
struct Operand {
  std::string name;
  std::optional<InputFile> file;
  Scalar number;
  std::optional<PlacedFile> placed;  // on the server
};

/// What the server is to know of `operand`. To explain, parts of files alone
/// are placed there, as only it knows how they lie.
absl::StatusOr<ProgramOperand> Offer(Session& session, Operand& operand,
                                     bool explains) {
  if (!operand.file) return ProgramOperand(operand.name, operand.number);
  if (explains && !operand.file->named.items) {
    return ProgramOperand(operand.name, operand.file->file.view());
  }
  absl::StatusOr<PlacedFile> placed =
      Place(session, *operand.file, /*contents=*/!explains);
  if (!placed.ok()) return placed.status();
  operand.placed = *std::move(placed);
  return ProgramOperand(operand.name, operand.placed->tensor());
}

int PrintExplanation(const absl::StatusOr<ProgramExplanation>& explained,
                     const ProgramArguments& arguments) {
  if (!explained.ok()) return Fail(explained.status());
  if (!arguments.tree.empty() && !arguments.keeps_tree()) {
    const absl::Status drawn = DrawTrees(*explained, arguments.tree);
    if (!drawn.ok()) return Fail(drawn);
  }
  if (arguments.explain() == ExplainAs::kJson) {
    absl::PrintF("%s\n", JsonText(ToJson(*explained)));
  } else {
    absl::PrintF("%s", explained->text);
  }
  return kOk;
}

/// Writes files and says what came of the program.
int Finish(const std::vector<Fetched>& all, const ProgramReport& report,
           absl::Duration uploading) {
  const absl::StatusOr<absl::Duration> writing = FetchAll(all);
  if (!writing.ok()) return Fail(writing.status());
  absl::PrintF(
      "work      %d operation%s, %.4g flops, %s of intermediate results, %s "
      "workspace",
      report.operation_count, report.operation_count == 1 ? "" : "s",
      report.flops, BytesText(report.peak_bytes),
      BytesText(report.workspace_bytes));
  if (report.gathered_bytes > 0) {
    absl::PrintF(", %s of views gathered", BytesText(report.gathered_bytes));
  }
  if (report.replayed) absl::PrintF(", replayed");
  for (const KeptExtent& kept : report.kept_extents) {
    absl::PrintF("\nkept      %d values along %s of statement %d, zeros beyond",
                 kept.extent, kept.label, kept.statement);
  }
  absl::PrintF("\nplans     %d, %d cached\n", report.plan_count,
               report.plan_cache_hits);
  absl::PrintF("times     upload %s, prepared %s, queued %s, executed %s",
               DurationText(uploading), DurationText(report.prepared),
               DurationText(report.queued), DurationText(report.executed));
  if (*writing > absl::ZeroDuration()) {
    absl::PrintF(", download %s", DurationText(*writing));
  }
  absl::PrintF("\n");
  return kOk;
}

/// Of a file of which only a part is an operand, writing it back means all.
const RemoteTensor& ToWrite(const Operand& operand, const std::string& path) {
  std::error_code unused;
  const bool same =
      std::filesystem::equivalent(operand.file->named.path, path, unused);
  return same ? operand.placed->whole : operand.placed->tensor();
}

/// Runs `source`, or explains it; `outputs` are files by name. A result that
/// `outputs` leave out is told without being written.
int Compute(const CommandLine& line, const ProgramSource& source,
            std::vector<Operand> operands, const std::vector<Binding>& outputs,
            const ProgramArguments& arguments) {
  const bool explains = arguments.explain() != ExplainAs::kNothing;
  absl::StatusOr<Session> session =
      Session::Connect(line.address, line.session_options());
  if (!session.ok()) return Fail(session.status());
  const absl::Time start = absl::Now();
  std::vector<ProgramOperand> offered;
  for (Operand& operand : operands) {
    absl::StatusOr<ProgramOperand> offer = Offer(*session, operand, explains);
    if (!offer.ok()) return Fail(offer.status());
    offered.push_back(*std::move(offer));
  }
  if (explains) {
    const auto explain = [&](const ProgramOptions& options) {
      return session->ExplainProgram(source, offered, options);
    };
    return PrintExplanation(
        arguments.keeps_tree()
            ? SearchTree(arguments.tree, arguments.options, explain)
            : explain(arguments.options),
        arguments);
  }
  const absl::Duration uploading = absl::Now() - start;
  absl::StatusOr<ProgramResults> ran =
      session->Run(source, offered, arguments.options);
  if (!ran.ok()) return Fail(ran.status());

  std::vector<Fetched> all;
  for (const ProgramResult& result : ran->results) {
    const auto to = std::ranges::find(outputs, result.name, &Binding::name);
    all.push_back(
        {result.name, &*result.tensor, to == outputs.end() ? "" : to->value});
  }
  for (const Binding& output : outputs) {
    if (ran->Find(output.name) != nullptr) continue;
    const auto operand =
        std::ranges::find(operands, output.name, &Operand::name);
    all.push_back(
        {output.name, &ToWrite(*operand, output.value), output.value});
  }
  return Finish(all, ran->report, uploading);
}

/// Opens what names stand for, files and, if they may be, numbers. Returns an
/// exit code.
int Open(const std::vector<Binding>& bindings, bool numbers,
         std::vector<Operand>& operands) {
  for (const Binding& binding : bindings) {
    Operand& operand = operands.emplace_back();
    operand.name = binding.name;
    if (const auto number = ParseScalar(binding.value); numbers && number) {
      operand.number = *number;
      continue;
    }
    const int opened = OpenInput(binding.value, operand.file);
    if (opened != kOk) return opened;
  }
  return kOk;
}

int RunEinsum(const CommandLine& line, const EinsumArguments& arguments) {
  std::vector<Binding> inputs;
  for (const std::string& input : arguments.inputs) {
    const auto before = std::ranges::count(inputs, input, &Binding::value);
    // Messages call operands so, each by a name of its own.
    inputs.push_back(
        {before == 0 ? input : absl::StrCat(input, "#", before + 1), input});
  }
  std::vector<Operand> operands;
  const int opened = Open(inputs, /*numbers=*/false, operands);
  if (opened != kOk) return opened;
  ProgramArguments program = arguments.program;
  program.options.outputs = {
      {.name = "result", .element_type = arguments.output_type}};
  std::vector<Binding> outputs;
  if (!arguments.output.empty()) outputs = {{"result", arguments.output}};
  return Compute(line, EinsumText{arguments.subscripts}, std::move(operands),
                 outputs, program);
}

int RunProgram(const CommandLine& line, const RunArguments& arguments) {
  const auto bindings = ParseBindings(arguments.operands);
  if (!bindings.ok()) {
    return FailUsage(std::string(bindings.status().message()));
  }
  const auto outputs = ParseBindings(arguments.outputs);
  if (!outputs.ok()) return FailUsage(std::string(outputs.status().message()));
  const absl::Status differ = CheckFilesDiffer(*outputs);
  if (!differ.ok()) return FailUsage(std::string(differ.message()));
  const absl::StatusOr<std::string> text = ReadStatements(arguments.source);
  if (!text.ok()) return Fail(text.status());
  std::vector<Operand> operands;
  const int opened = Open(*bindings, /*numbers=*/true, operands);
  if (opened != kOk) return opened;
  ProgramArguments program = arguments.program;
  for (const Binding& output : *outputs) {
    const auto operand =
        std::ranges::find(operands, output.name, &Operand::name);
    if (operand == operands.end()) {
      program.options.outputs.push_back({.name = output.name});
    } else if (!operand->file) {
      return FailUsage(absl::StrCat("'", output.name,
                                    "' is a number, wanted a tensor that the "
                                    "program makes or writes"));
    }
  }
  return Compute(line, *text, std::move(operands), *outputs, program);
}

void AddProgramOptions(CLI::App& command, bool explain,
                       ProgramArguments& program) {
  program.only_explains = explain;
  AddCommonOptions(command, program.options);
  PathOptions& path = program.options.path;
  AddChoice(command, "--path", path.method, PathMethodNames(),
            "How the order of contractions is found");
  AddDuration(command, "--time-budget", path.time_budget,
              "How long to search for that order, e.g. 2s or 500ms");
  command
      .add_option_function<std::string>(
          "--costs", [&path](const std::string& text) { path.costs = text; },
          "What labels cost, of which that order is to take least where the "
          "variable is large: 'a=>χ, b=>2*χ^2', '(a,b)', '!(a,b)', or ''")
      ->type_name("COSTS");
  AddBytes(command, "--memory-limit", path.memory_limit_bytes,
           "Most memory of intermediate results; to keep to it, products are "
           "computed in parts");
  if (explain) {
    AddJsonFlag(command, program.json);
  } else {
    command
        .add_flag("--explain{text}", program.explain_as,
                  "Say how it would be computed, and run nothing; "
                  "--explain=json prints JSON")
        ->check(CLI::IsMember({"text", "json"}));
  }
  command
      .add_option("--tree", program.tree,
                  "Explain, and draw the order of contractions into this file, "
                  "which ends with .svg, .txt or, by rsvg-convert, .png; or, "
                  "with .json, keep it there, and go on from what is there: "
                  "--time-budget then is as long as wanted")
      ->type_name("FILE");
}

void AddEinsum(CLI::App& app, bool explain, CommandLine& line) {
  const auto product = std::make_shared<EinsumArguments>();
  CLI::App* einsum = app.add_subcommand(
      "einsum",
      "NumPy's einsum of any number of arrays: tensorctl einsum "
      "\"ij,jk,kl->il\" a.npy b.npy c.npy -o d.npy");
  einsum
      ->add_option("subscripts", product->subscripts,
                   "What to compute, as for numpy.einsum, e.g. \"ij,jk->ik\"")
      ->required();
  einsum
      ->add_option("files", product->inputs,
                   ".npy files, one for each term of the subscripts; an index "
                   "takes a part: 'a.npy[1:5, ::-1]'")
      ->required();
  if (!explain) {
    AddOutput(*einsum, product->output,
              ".npy file to write; without it the result is only described");
  }
  AddChoice(*einsum, "--output-type", product->output_type, ElementTypeNames(),
            "Element type of the result");
  AddProgramOptions(*einsum, explain, product->program);
  einsum->callback(
      [&line, product] { line.exit_code = RunEinsum(line, *product); });
}

void AddRun(CLI::App& app, bool explain, CommandLine& line) {
  const auto statements = std::make_shared<RunArguments>();
  CLI::App* run = app.add_subcommand(
      "run",
      "A program in index notation: tensorctl run 'D[i,k] := x*A[i,j]*B[j,k]' "
      "A=a.npy B=b.npy x=2.5 -o D=d.npy");
  run->add_option("program", statements->source,
                  "Statements, or a file of them, or - for stdin")
      ->required();
  run->add_option("operands", statements->operands,
                  "What names stand for, NAME=VALUE: .npy files, of which an "
                  "index takes a part, and numbers");
  if (!explain) {
    AddOutput(*run, statements->outputs,
              "NAME=FILE, the .npy file to write a tensor to that the program "
              "makes, or has written; without any, results are only described")
        ->allow_extra_args(false);
  }
  AddProgramOptions(*run, explain, statements->program);
  run->callback(
      [&line, statements] { line.exit_code = RunProgram(line, *statements); });
}

}  // namespace

void AddProgramCommands(CLI::App& app, bool explain, CommandLine& line) {
  AddEinsum(app, explain, line);
  AddRun(app, explain, line);
}

}  // namespace tensord::cli
