#include "client/cli/program_text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/json.h"

namespace tensord::cli {
namespace {

void PutOperation(const ProgramOperation& operation, JsonWriter& json) {
  json.BeginObject();
  json.Field("statement", int64_t{operation.statement});
  json.Field("operation", operation.operation);
  json.Field("text", operation.text);
  json.Field("kernel", operation.kernel);
  json.Field("slice_count", operation.slice_count);
  json.Field("flops", operation.flops);
  json.Field("predicted_nanoseconds", operation.predicted_nanoseconds);
  json.Field("workspace_bytes", operation.workspace_bytes);
  json.Flag("is_folded", operation.is_folded);
  json.EndObject();
}

void PutStrings(const std::vector<std::string>& values, JsonWriter& json) {
  json.BeginArray();
  for (const std::string& value : values) json.String(value);
  json.EndArray();
}

void PutNode(const TreeNode& node, JsonWriter& json) {
  json.BeginObject();
  if (!node.name.empty()) json.Field("name", node.name);
  json.Key("labels");
  PutStrings(node.labels, json);
  json.Key("extents");
  json.Numbers(node.extents);
  if (!node.children.empty()) {
    json.Key("children");
    json.Numbers({node.children.begin(), node.children.end()});
    json.Field("flops", node.flops);
  }
  json.EndObject();
}

void PutProduct(const ProgramProduct& product, JsonWriter& json) {
  json.BeginObject();
  json.Field("statement", int64_t{product.statement});
  json.Field("method", product.method);
  json.Field("flops", product.flops);
  json.Field("largest", product.largest);
  if (!product.symbolic_cost.empty()) {
    json.Field("symbolic_cost", product.symbolic_cost);
  }
  json.Key("sliced");
  PutStrings(product.sliced, json);
  json.Field("slice_count", product.slice_count);
  json.Key("nodes");
  json.BeginArray();
  for (const TreeNode& node : product.nodes) PutNode(node, json);
  json.EndArray();
  json.EndObject();
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

std::string JsonText(const ProgramExplanation& explanation) {
  JsonWriter json;
  json.BeginObject();
  json.Field("flops", explanation.flops);
  json.Field("peak_bytes", explanation.peak_bytes);
  json.Field("kept_bytes", explanation.kept_bytes);
  json.Field("workspace_bytes", explanation.workspace_bytes);
  json.Field("predicted_nanoseconds", explanation.predicted_nanoseconds);
  json.Key("operations");
  json.BeginArray();
  for (const ProgramOperation& operation : explanation.operations) {
    PutOperation(operation, json);
  }
  json.EndArray();
  json.Key("products");
  json.BeginArray();
  for (const ProgramProduct& product : explanation.products) {
    PutProduct(product, json);
  }
  json.EndArray();
  json.EndObject();
  return json.text();
}

}  // namespace tensord::cli
