#include "client/cli/program_commands.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/draw_trees.h"
#include "client/cli/file_tensors.h"
#include "client/cli/program_text.h"
#include "client/cli/scalar.h"
#include "client/cli/text.h"

namespace tensord::cli {
namespace {

/// A name of the program and the file or number behind it.
struct Operand {
  std::string name;
  std::optional<InputFile> file;
  Scalar number;
  std::optional<PlacedFile> placed;  // on the server
};

/// What a name stands for, in the end.
struct Fetched {
  std::string name;
  const RemoteTensor* tensor;
  std::string path;  // "": not written
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
  if (!arguments.tree.empty()) {
    const absl::Status drawn = DrawTrees(*explained, arguments.tree);
    if (!drawn.ok()) return Fail(drawn);
  }
  if (arguments.explain == ExplainAs::kJson) {
    std::printf("%s\n", JsonText(ToJson(*explained)).c_str());
  } else {
    std::printf("%s", explained->text.c_str());
  }
  return kOk;
}

/// Writes files and says what came of the program.
int Finish(const std::vector<Fetched>& all, const ProgramReport& report,
           absl::Duration uploading) {
  const absl::Time start = absl::Now();
  bool writes = false;
  for (const Fetched& each : all) {
    if (each.path.empty()) continue;
    const absl::Status status = Fetch(*each.tensor, each.path);
    if (!status.ok()) return Fail(status);
    writes = true;
  }
  const absl::Duration downloading = absl::Now() - start;
  for (const Fetched& each : all) {
    std::printf("%-9s %s%s%s\n", each.name.c_str(),
                TensorText(*each.tensor).c_str(),
                each.path.empty() ? "" : " -> ", each.path.c_str());
    if (each.tensor->mode_count() > 0) continue;
    const std::string value = ValueText(*each.tensor);
    if (!value.empty()) std::printf("value     %s\n", value.c_str());
  }
  std::printf(
      "work      %lld operation%s, %.4g flops, %s of intermediate results, %s "
      "workspace",
      static_cast<long long>(report.operation_count),
      report.operation_count == 1 ? "" : "s", report.flops,
      BytesText(report.peak_bytes).c_str(),
      BytesText(report.workspace_bytes).c_str());
  if (report.gathered_bytes > 0) {
    std::printf(", %s of views gathered",
                BytesText(report.gathered_bytes).c_str());
  }
  if (report.replayed) std::printf(", replayed");
  std::printf("\nplans     %lld, %lld cached\n",
              static_cast<long long>(report.plan_count),
              static_cast<long long>(report.plan_cache_hits));
  std::printf("times     upload %s, prepared %s, queued %s, executed %s",
              DurationText(uploading).c_str(),
              DurationText(report.prepared).c_str(),
              DurationText(report.queued).c_str(),
              DurationText(report.executed).c_str());
  if (writes) std::printf(", download %s", DurationText(downloading).c_str());
  std::printf("\n");
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
int Compute(const std::string& address, const SessionOptions& session_options,
            const ProgramSource& source, std::vector<Operand> operands,
            const std::vector<Binding>& outputs,
            const ProgramArguments& arguments) {
  const bool explains = arguments.explain != ExplainAs::kNothing;
  absl::StatusOr<Session> session = Session::Connect(address, session_options);
  if (!session.ok()) return Fail(session.status());
  const absl::Time start = absl::Now();
  std::vector<ProgramOperand> offered;
  for (Operand& operand : operands) {
    absl::StatusOr<ProgramOperand> offer = Offer(*session, operand, explains);
    if (!offer.ok()) return Fail(offer.status());
    offered.push_back(*std::move(offer));
  }
  if (explains) {
    return PrintExplanation(
        session->ExplainProgram(source, offered, arguments.options), arguments);
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
    absl::StatusOr<IndexedFile> named = ParseIndexedFile(binding.value);
    if (!named.ok()) return FailUsage(std::string(named.status().message()));
    absl::StatusOr<InputFile> file = OpenInput(*std::move(named));
    if (!file.ok()) return Fail(file.status());
    operand.file = *std::move(file);
  }
  return kOk;
}

}  // namespace

int RunEinsum(const std::string& address, const SessionOptions& session,
              const EinsumArguments& arguments) {
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
  return Compute(address, session, EinsumText{arguments.subscripts},
                 std::move(operands), outputs, program);
}

int RunProgram(const std::string& address, const SessionOptions& session,
               const RunArguments& arguments) {
  const auto bindings = ParseBindings(arguments.operands);
  if (!bindings.ok()) {
    return FailUsage(std::string(bindings.status().message()));
  }
  const auto outputs = ParseBindings(arguments.outputs);
  if (!outputs.ok()) return FailUsage(std::string(outputs.status().message()));
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
  return Compute(address, session, *text, std::move(operands), *outputs,
                 program);
}

}  // namespace tensord::cli
