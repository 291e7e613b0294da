#include "client/cli/program_text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace tensord::cli {
namespace {

Json OperationJson(const ProgramOperation& operation) {
  return {
      {"statement", operation.statement},
      {"operation", operation.operation},
      {"text", operation.text},
      {"kernel", operation.kernel},
      {"slice_count", operation.slice_count},
      {"flops", JsonNumber(operation.flops)},
      {"predicted_nanoseconds", JsonNumber(operation.predicted_nanoseconds)},
      {"workspace_bytes", operation.workspace_bytes},
      {"is_folded", operation.is_folded}};
}

Json NodeJson(const TreeNode& node) {
  Json json = Json::object();
  if (!node.name.empty()) json["name"] = node.name;
  json["labels"] = node.labels;
  json["extents"] = node.extents;
  if (!node.children.empty()) {
    json["children"] = node.children;
    json["flops"] = JsonNumber(node.flops);
  }
  return json;
}

Json ProductJson(const ProgramProduct& product) {
  Json json = {{"statement", product.statement},
               {"method", product.method},
               {"flops", JsonNumber(product.flops)},
               {"largest", JsonNumber(product.largest)}};
  if (!product.symbolic_cost.empty()) {
    json["symbolic_cost"] = product.symbolic_cost;
  }
  json["sliced"] = product.sliced;
  json["slice_count"] = product.slice_count;
  json["nodes"] = JsonList(product.nodes, NodeJson);
  return json;
}

}  // namespace

absl::StatusOr<std::vector<Binding>> ParseBindings(
    const std::vector<std::string>& words) {
  std::vector<Binding> bindings;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos ||
        equals + 1 == word.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", word, "' is not of the form NAME=VALUE, e.g. A=a.npy"));
    }
    Binding binding{word.substr(0, equals), word.substr(equals + 1)};
    if (std::ranges::find(bindings, binding.name, &Binding::name) !=
        bindings.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", binding.name, "' is given twice"));
    }
    bindings.push_back(std::move(binding));
  }
  return bindings;
}

absl::Status CheckFilesDiffer(const std::vector<Binding>& outputs) {
  const auto file = [](const Binding& output) {
    std::error_code unused;
    const auto path = std::filesystem::weakly_canonical(
        std::filesystem::absolute(output.value, unused), unused);
    return path.empty() ? std::filesystem::path(output.value) : path;
  };
  for (size_t i = 1; i < outputs.size(); ++i) {
    const auto other = std::ranges::find(outputs.begin(), outputs.begin() + i,
                                         file(outputs[i]), file);
    if (other == outputs.begin() + i) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "-o names ", outputs[i].value, " twice, wanted two files, for ",
        other->name, " and for ", outputs[i].name));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadStatements(const std::string& source) {
  if (source == "-") {
    return std::string(std::istreambuf_iterator<char>(std::cin), {});
  }
  std::error_code unused;
  if (!std::filesystem::exists(source, unused)) {
    if (source.find('=') != std::string::npos) return source;
    return absl::NotFoundError(
        absl::StrCat("there is no file '", source,
                     "', and as a program it has no statement, e.g. D[i,k] := "
                     "A[i,j]*B[j,k]"));
  }
  std::ifstream file(source);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", source));
  }
  return text;
}

Json ToJson(const ProgramExplanation& explanation) {
  return {
      {"flops", JsonNumber(explanation.flops)},
      {"peak_bytes", explanation.peak_bytes},
      {"kept_bytes", explanation.kept_bytes},
      {"workspace_bytes", explanation.workspace_bytes},
      {"predicted_nanoseconds", JsonNumber(explanation.predicted_nanoseconds)},
      {"operations", JsonList(explanation.operations, OperationJson)},
      {"products", JsonList(explanation.products, ProductJson)}};
}

}  // namespace tensord::cli
