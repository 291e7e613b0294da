// Brackets and the labels in them.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/notation/forms.h"
#include "core/notation/parser.h"
#include "core/notation/to_text.h"

namespace tensord::core {
namespace {

constexpr absl::string_view kLabelWanted =
    "a label: a name, an integer or a quoted character";

}  // namespace

absl::Status Parser::ReadBrackets(TensorReference& tensor,
                                  std::optional<TextPosition>* colon) {
  TENSORD_ASSIGN_OR_RETURN(tensor.has_brackets, TakeIf("["));
  if (!tensor.has_brackets) return absl::OkStatus();
  if (colon != nullptr && token_.Is(":")) {
    *colon = token_.position;
    TENSORD_RETURN_IF_ERROR(Advance());
    return Take("]", "']' behind '[:'");
  }
  TENSORD_ASSIGN_OR_RETURN(const bool is_empty, TakeIf("]"));
  return is_empty ? absl::OkStatus() : ReadLabels(tensor);
}

absl::Status Parser::ReadLabels(TensorReference& tensor) {
  std::optional<bool> is_comma;  // or a blank, between labels
  bool has_two_groups = false;
  while (true) {
    const bool is_tuple = token_.Is("(");
    TENSORD_RETURN_IF_ERROR(is_tuple ? ReadTuple(tensor) : AddLabel(tensor));
    const bool begins_group =
        token_.kind == Token::Kind::kEndOfStatement && token_.text == ";";
    if (begins_group && !has_two_groups) {
      has_two_groups = true;
      TENSORD_RETURN_IF_ERROR(Advance());
      continue;
    }
    if (token_.Is("]") && (has_two_groups || !is_tuple)) return Advance();
    if (begins_group) return Unexpected("']', as two groups of labels are all");
    if (is_tuple) {
      return Unexpected(has_two_groups ? "']'" : "';'",
                        " behind labels in parentheses");
    }
    TENSORD_RETURN_IF_ERROR(TakeSeparator(is_comma));
    if (token_.Is("(")) return Unexpected(kLabelWanted);
  }
}

absl::Status Parser::TakeSeparator(std::optional<bool>& is_comma) {
  const bool begins_label = token_.kind == Token::Kind::kName ||
                            token_.kind == Token::Kind::kNumber ||
                            token_.kind == Token::Kind::kQuoted ||
                            token_.Is("-");
  if (!token_.Is(",") && (!begins_label || !IsApart())) {
    return Unexpected("',', ';', a blank or ']' behind a label");
  }
  if (is_comma.value_or(token_.Is(",")) != token_.Is(",")) {
    return Unexpected(*is_comma ? "','" : "a blank",
                      " or ']', as between the labels before");
  }
  is_comma = token_.Is(",");
  if (*is_comma) return Advance();
  if (!token_.Is("-")) return absl::OkStatus();
  // Of `[1 -2]` two labels, of `[1 - 2]` none.
  const TextPosition sign = token_.position;
  Scanner ahead = scanner_;
  TENSORD_ASSIGN_OR_RETURN(const Token next, ahead.Next());
  if (next.text.data() == token_.text.data() + 1) return absl::OkStatus();
  return ErrorAt(sign, "SYNTAX_ERROR",
                 "got '-' between blanks, wanted a label such as -1");
}

absl::Status Parser::ReadTuple(TensorReference& tensor) {
  TENSORD_RETURN_IF_ERROR(Advance());
  while (true) {
    TENSORD_ASSIGN_OR_RETURN(const bool is_end, TakeIf(")"));
    if (is_end) return absl::OkStatus();
    TENSORD_RETURN_IF_ERROR(AddLabel(tensor));
    if (token_.Is(")")) continue;
    TENSORD_RETURN_IF_ERROR(Take(",", "',' or ')' behind a label"));
  }
}

absl::Status Parser::AddLabel(TensorReference& tensor) {
  if (tensor.labels.size() == limits_.max_labels) {
    return ErrorAt(token_.position, "PROGRAM_TOO_LONG",
                   "a further label begins, the limit is ", limits_.max_labels,
                   " labels in a tensor");
  }
  const bool is_name = token_.kind == Token::Kind::kName;
  TENSORD_ASSIGN_OR_RETURN(Label label, ReadLabel());
  if (is_name && token_.Is("[")) {
    TENSORD_RETURN_IF_ERROR(ReadIndices(tensor.labels.size(), label));
  }
  tensor.labels.push_back(std::move(label));
  return absl::OkStatus();
}

absl::Status Parser::ReadIndices(size_t mode, Label& label) {
  if (depth_ == limits_.max_depth) {
    return ErrorAt(token_.position, "PROGRAM_TOO_DEEP", "brackets open inside ",
                   depth_, " others, the limit is a depth of ",
                   limits_.max_depth);
  }
  ++depth_;
  TENSORD_RETURN_IF_ERROR(CountFactor());
  const size_t before = indices_.size();
  TensorReference tensor;
  tensor.name = label.text;
  tensor.position = label.position;
  TENSORD_RETURN_IF_ERROR(ReadBrackets(tensor, nullptr));
  Factor indices = TakeAtIndices(std::move(tensor), before);
  --depth_;
  label.text = absl::StrCat(ToText(indices), "#", mode);
  indices_.emplace_back(label, std::move(indices));
  return absl::OkStatus();
}

Factor Parser::TakeAtIndices(TensorReference tensor, size_t before) {
  Factor factor;
  factor.position = tensor.position;
  factor.value = std::move(tensor);
  for (size_t i = before; i < indices_.size(); ++i) {
    auto& [label, indices] = indices_[i];
    Factor taken;
    taken.position = factor.position;
    Call& call = taken.value.emplace<Call>();
    call.function = BinaryOperator::kTake;
    call.taken = std::move(label.text);
    call.arguments.push_back(SumOf(std::move(factor)));
    call.arguments.push_back(SumOf(std::move(indices)));
    factor = std::move(taken);
  }
  indices_.resize(before);
  return factor;
}

absl::Status Parser::RefuseIndices(size_t before,
                                   absl::string_view where) const {
  if (indices_.size() == before) return absl::OkStatus();
  const auto& [label, indices] = indices_[before];
  return ErrorAt(label.position, "SYNTAX_ERROR", "got ", ToText(indices),
                 " for a label, wanted labels ", where);
}

absl::StatusOr<Label> Parser::ReadLabel() {
  Label label{"", token_.position};
  TENSORD_ASSIGN_OR_RETURN(const bool is_negative, TakeIf("-"));
  if (token_.kind == Token::Kind::kNumber) {
    int64_t number = 0;
    if (!std::ranges::all_of(token_.text, absl::ascii_isdigit)) {
      return Unexpected("an integer for a label");
    }
    const std::string text = absl::StrCat(is_negative ? "-" : "", token_.text);
    if (!absl::SimpleAtoi(text, &number)) {
      return Unexpected("an integer of 64 bits for a label");
    }
    label.text = absl::StrCat(number);
  } else if (is_negative) {
    return Unexpected("an integer behind '-'");
  } else if (token_.kind == Token::Kind::kName ||
             token_.kind == Token::Kind::kQuoted) {
    label.text = std::string(token_.text);
  } else {
    return Unexpected(kLabelWanted);
  }
  TENSORD_RETURN_IF_ERROR(Advance());
  return label;
}

}  // namespace tensord::core
