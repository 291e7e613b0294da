#include "client/cpp/src/einsum.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "client/cpp/src/errors.h"

namespace tensord::internal {
namespace {

template <typename... Parts>
absl::Status Malformed(std::string_view subscripts, const Parts&... parts) {
  return InvalidArgument(
      "EINSUM_MALFORMED", "einsum '",
      absl::string_view(subscripts.data(), subscripts.size()), "': ", parts...);
}

template <typename... Parts>
absl::Status NotOneOperation(std::string_view subscripts,
                             const Parts&... parts) {
  return Error(
      absl::StatusCode::kUnimplemented, "EINSUM_NOT_ONE_OPERATION",
      absl::StrCat("einsum '",
                   absl::string_view(subscripts.data(), subscripts.size()),
                   "': ", parts...,
                   "; one call does one contraction of two tensors, "
                   "or one permutation or sum of one"));
}

absl::Status CheckLabels(std::string_view subscripts, const std::string& term) {
  for (const char label : term) {
    if (!absl::ascii_isalpha(static_cast<unsigned char>(label))) {
      return Malformed(subscripts, "'", std::string(1, label),
                       "' is not a label, wanted letters");
    }
  }
  return absl::OkStatus();
}

/// The labels that occur once, in alphabetical order, as NumPy has it.
std::string ImplicitOutput(const std::vector<std::string>& terms) {
  std::map<char, int> counts;
  for (const std::string& term : terms) {
    for (const char label : term) ++counts[label];
  }
  std::string output;
  for (const auto& [label, count] : counts) {
    if (count == 1) output.push_back(label);
  }
  return output;
}

char RepeatedLabel(std::string term) {
  std::sort(term.begin(), term.end());
  const auto repeated = std::adjacent_find(term.begin(), term.end());
  return repeated == term.end() ? '\0' : *repeated;
}

}  // namespace

absl::StatusOr<EinsumOperation> ParseEinsum(std::string_view subscripts,
                                            absl::Span<const int> mode_counts) {
  std::string text(subscripts);
  absl::RemoveExtraAsciiWhitespace(&text);
  const std::string trimmed = text;  // what messages quote
  subscripts = trimmed;
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());

  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  if (sides.size() > 2) return Malformed(subscripts, "more than one '->'");
  if (text.find("...") != std::string::npos) {
    return NotOneOperation(subscripts, "an ellipsis is not supported here");
  }
  const std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  for (const std::string& term : terms) {
    TENSORD_CLIENT_RETURN_IF_ERROR(CheckLabels(subscripts, term));
  }
  const std::string output =
      sides.size() == 2 ? sides[1] : ImplicitOutput(terms);
  TENSORD_CLIENT_RETURN_IF_ERROR(CheckLabels(subscripts, output));

  if (terms.size() != mode_counts.size()) {
    return Malformed(subscripts, "has ", terms.size(), " terms for ",
                     mode_counts.size(), " tensors");
  }
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].size() != static_cast<size_t>(mode_counts[i])) {
      return Malformed(subscripts, "term ", i, " '", terms[i], "' has ",
                       terms[i].size(), " labels, but its tensor has ",
                       mode_counts[i], " modes");
    }
  }
  if (const char label = RepeatedLabel(output)) {
    return Malformed(subscripts, "'", std::string(1, label),
                     "' occurs twice in the output");
  }
  for (const char label : output) {
    if (sides[0].find(label) == std::string::npos) {
      return Malformed(subscripts, "'", std::string(1, label),
                       "' of the output is in no term");
    }
  }
  for (const std::string& term : terms) {
    if (const char label = RepeatedLabel(term)) {
      return NotOneOperation(subscripts, "'", std::string(1, label),
                             "' occurs twice in '", term,
                             "', which takes a diagonal");
    }
  }
  if (terms.size() > 2) {
    return NotOneOperation(subscripts, "it has ", terms.size(), " tensors");
  }

  EinsumOperation operation;
  for (const std::string& term : terms) operation.inputs.emplace_back(term);
  operation.output = Modes(output);
  using Kind = EinsumOperation::Kind;
  if (terms.size() == 2) {
    operation.kind = Kind::kContract;
  } else if (output.size() < terms[0].size()) {
    operation.kind = Kind::kReduce;
  }
  return operation;
}

}  // namespace tensord::internal
