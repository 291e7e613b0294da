#include "client/cli/operation_commands.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/cli/file_tensors.h"
#include "client/cli/indexed_file.h"
#include "client/cli/text.h"

namespace tensord::cli {
namespace {

/// `ij,jk->ik` taken apart.
struct Subscripts {
  std::vector<std::string> terms;
  std::string output;
};

absl::StatusOr<Subscripts> Split(const OperationArguments& arguments) {
  std::string text = arguments.subscripts;
  absl::StripAsciiWhitespace(&text);
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  if (sides.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is not of the form `terms->output`, e.g. ij->ji"));
  }
  Subscripts subscripts{absl::StrSplit(sides[0], ','), sides[1]};
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
};

TypedOperation Prepare(const OperationArguments& arguments,
                       const Subscripts& subscripts,
                       const std::vector<PlacedFile>& files) {
  TypedOperation typed{.operands = {},
                       .d = Modes(subscripts.output),
                       .permute = {},
                       .elementwise = {},
                       .reduce = {},
                       .contract = {}};
  for (size_t i = 0; i < files.size(); ++i) {
    typed.operands.emplace_back(files[i].tensor(), Modes(subscripts.terms[i]));
  }
  // Letters by place: two operands of an element-wise operation are a and c,
  // the last one of a reduction or contraction with an addend is c.
  std::vector<Operand>& operands = typed.operands;
  const bool elementwise = arguments.kind == OperationKind::kElementwise;
  const size_t input_count = arguments.kind == OperationKind::kContract ? 2 : 1;
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
  typed.reduce = {
      .alpha = alpha, .beta = beta, .c = {}, .execution = execution};
  typed.contract = {
      .alpha = alpha, .beta = beta, .c = {}, .execution = execution};
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
    default: return session.ExplainPermute(in[0], typed.d, typed.permute);
  }
}

int PrintExplanation(const absl::StatusOr<Explanation>& explained) {
  if (!explained.ok()) return Fail(explained.status());
  const Explanation& e = *explained;
  std::printf("problem    %s\n", e.problem.c_str());
  const bool refused =
      std::any_of(e.candidates.begin(), e.candidates.end(),
                  [](const KernelCandidate& c) { return !c.refusal.empty(); });
  const char* no_kernel =
      refused ? "none, all decline" : "none, there is nothing to compute";
  std::printf("kernel     %s\n",
              e.kernel.empty() ? no_kernel : e.kernel.c_str());
  std::printf("work       %.4g flops, %s moved\n", e.flops,
              BytesText(e.moved_bytes).c_str());
  std::printf("workspace  %s\n", BytesText(e.workspace_bytes).c_str());
  std::printf("plan       %s\n", e.plan_cache_hit ? "cached" : "new");
  std::printf("candidates\n");
  for (const KernelCandidate& candidate : e.candidates) {
    if (candidate.refusal.empty()) {
      std::printf(
          "  %-32s %s predicted, %s workspace: %s\n", candidate.kernel.c_str(),
          DurationText(absl::Nanoseconds(candidate.predicted_nanoseconds))
              .c_str(),
          BytesText(candidate.workspace_bytes).c_str(),
          candidate.decision.c_str());
    } else {
      std::printf("  %-32s declines: %s\n", candidate.kernel.c_str(),
                  candidate.refusal.c_str());
    }
  }
  return kOk;
}

int Finish(absl::StatusOr<RemoteTensor> result,
           const OperationArguments& arguments, absl::Duration uploading) {
  if (!result.ok()) return Fail(result.status());
  const absl::Time start = absl::Now();
  if (!arguments.output.empty()) {
    const absl::Status status = Fetch(*result, arguments.output);
    if (!status.ok()) return Fail(status);
  }
  const ExecutionReport& report = result->report();
  std::printf("result    %s%s%s\n", TensorText(*result).c_str(),
              arguments.output.empty() ? "" : " -> ", arguments.output.c_str());
  if (result->mode_count() == 0) {
    const std::string value = ValueText(*result);
    if (!value.empty()) std::printf("value     %s\n", value.c_str());
  }
  std::printf("kernel    %s, plan %s, %s workspace",
              report.kernel.empty() ? "none" : report.kernel.c_str(),
              report.plan_cache_hit ? "cached" : "new",
              BytesText(report.workspace_bytes).c_str());
  if (report.gathered_bytes > 0) {
    std::printf(", %s of views gathered",
                BytesText(report.gathered_bytes).c_str());
  }
  std::printf("\n");
  std::printf("times     upload %s, queued %s, executed %s",
              DurationText(uploading).c_str(),
              DurationText(report.queued).c_str(),
              DurationText(report.executed).c_str());
  if (!arguments.output.empty()) {
    std::printf(", download %s", DurationText(absl::Now() - start).c_str());
  }
  std::printf("\n");
  return kOk;
}

}  // namespace

int RunOperation(const std::string& address, const SessionOptions& options,
                 const OperationArguments& arguments) {
  const absl::StatusOr<Subscripts> subscripts = Split(arguments);
  if (!subscripts.ok()) {
    return FailUsage(std::string(subscripts.status().message()));
  }
  std::vector<InputFile> inputs;
  for (const std::string& argument : arguments.inputs) {
    absl::StatusOr<IndexedFile> named = ParseIndexedFile(argument);
    if (!named.ok()) return FailUsage(std::string(named.status().message()));
    absl::StatusOr<InputFile> input = OpenInput(*std::move(named));
    if (!input.ok()) return Fail(input.status());
    inputs.push_back(*std::move(input));
  }
  OutputPadding padding;
  if (!arguments.padding.empty()) {
    absl::StatusOr<OutputPadding> parsed = ParsePadding(arguments.padding);
    if (!parsed.ok()) return FailUsage(std::string(parsed.status().message()));
    padding = *std::move(parsed);
    padding.value = arguments.padding_value;
  }
  absl::StatusOr<Session> session = Session::Connect(address, options);
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

  TypedOperation typed = Prepare(arguments, *subscripts, files);
  typed.permute.padding = std::move(padding);
  if (arguments.explain) {
    return PrintExplanation(Explain(*session, arguments, typed));
  }
  return Finish(Run(*session, arguments, typed), arguments, uploading);
}

}  // namespace tensord::cli
