#include "client/cli/operation_commands.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/cli/indexed_file.h"
#include "client/cli/npy.h"
#include "client/cli/progress_bar.h"
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
                       const std::vector<RemoteTensor>& tensors) {
  TypedOperation typed{.operands = {},
                       .d = Modes(subscripts.output),
                       .permute = {},
                       .elementwise = {},
                       .reduce = {},
                       .contract = {}};
  for (size_t i = 0; i < tensors.size(); ++i) {
    typed.operands.emplace_back(tensors[i], Modes(subscripts.terms[i]));
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

std::string Describe(ElementType element_type,
                     const std::vector<int64_t>& extents) {
  return absl::StrCat(std::string(ToString(element_type)), " ",
                      ShapeText(extents));
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
          "  %-32s %s predicted, %s workspace\n", candidate.kernel.c_str(),
          DurationText(absl::Nanoseconds(candidate.predicted_nanoseconds))
              .c_str(),
          BytesText(candidate.workspace_bytes).c_str());
    } else {
      std::printf("  %-32s declines: %s\n", candidate.kernel.c_str(),
                  candidate.refusal.c_str());
    }
  }
  return kOk;
}

absl::StatusOr<RemoteTensor> Send(Session& session, const std::string& path,
                                  const UntypedHostView& view) {
  ProgressBar bar(absl::StrCat("upload ", path));
  UploadOptions options;
  options.progress = [&](int64_t done, int64_t total) {
    bar.Update(done, total);
  };
  return session.Upload(view, options);
}

absl::Status Fetch(const RemoteTensor& tensor, const std::string& path) {
  absl::StatusOr<NpyWriter> file =
      NpyWriter::Create(path, {.element_type = tensor.element_type(),
                               .extents = tensor.extents(),
                               .order = Order::kLastModeFastest});
  if (!file.ok()) return file.status();
  ProgressBar bar(absl::StrCat("download ", path));
  DownloadOptions options;
  options.progress = [&](int64_t done, int64_t total) {
    bar.Update(done, total);
  };
  const absl::Status status =
      tensor.DownloadTo(tensor.element_type(), file->data(), options);
  return status.ok() ? file->Commit() : status;
}

/// A scalar result, when its type is one that prints.
std::string ValueText(const RemoteTensor& tensor) {
  const auto text = [&]<typename T>(T) -> std::string {
    const absl::StatusOr<std::vector<T>> value = tensor.Download<T>();
    char digits[32] = "";
    if (value.ok()) {
      std::snprintf(digits, sizeof(digits), "%.17g",
                    static_cast<double>(value->front()));
    }
    return digits;
  };
  switch (tensor.element_type()) {
    case ElementType::kFloat32: return text(float{});
    case ElementType::kFloat64: return text(double{});
    case ElementType::kInt32: return text(int32_t{});
    default: return "";
  }
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
  std::printf("result    %s%s%s\n",
              Describe(result->element_type(), result->extents()).c_str(),
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
  const bool is_einsum = arguments.kind == OperationKind::kEinsum;
  absl::StatusOr<Subscripts> subscripts;
  if (!is_einsum) {
    subscripts = Split(arguments);
    if (!subscripts.ok()) {
      return FailUsage(std::string(subscripts.status().message()));
    }
  }
  std::vector<IndexedFile> inputs;
  std::vector<NpyFile> files;
  for (const std::string& argument : arguments.inputs) {
    absl::StatusOr<IndexedFile> input = ParseIndexedFile(argument);
    if (!input.ok()) return FailUsage(std::string(input.status().message()));
    absl::StatusOr<NpyFile> file = NpyFile::Open(input->path);
    if (!file.ok()) return Fail(file.status());
    inputs.push_back(*std::move(input));
    files.push_back(*std::move(file));
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
  std::vector<RemoteTensor> tensors;
  for (size_t i = 0; i < files.size(); ++i) {
    const UntypedHostView view = files[i].view();
    absl::StatusOr<RemoteTensor> tensor =
        arguments.explain ? session->Create(view.element_type, view.layout)
                          : Send(*session, inputs[i].path, view);
    if (tensor.ok() && inputs[i].items) {
      tensor = tensor->Index(*inputs[i].items);
    }
    if (!tensor.ok()) return Fail(tensor.status());
    tensors.push_back(*std::move(tensor));
  }
  const absl::Duration uploading = absl::Now() - start;

  if (is_einsum) {
    const std::vector<std::reference_wrapper<const RemoteTensor>> operands(
        tensors.begin(), tensors.end());
    if (arguments.explain) {
      return PrintExplanation(session->ExplainEinsum(
          arguments.subscripts, operands, arguments.execution));
    }
    return Finish(
        session->Einsum(arguments.subscripts, operands, arguments.execution),
        arguments, uploading);
  }
  TypedOperation typed = Prepare(arguments, *subscripts, tensors);
  typed.permute.padding = std::move(padding);
  if (arguments.explain) {
    return PrintExplanation(Explain(*session, arguments, typed));
  }
  return Finish(Run(*session, arguments, typed), arguments, uploading);
}

}  // namespace tensord::cli
