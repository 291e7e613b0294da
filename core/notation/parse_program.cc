#include "core/notation/parse_program.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/notation/label_rules.h"
#include "core/notation/scanner.h"
#include "core/notation/text_error.h"

namespace tensord::core {
namespace {

constexpr absl::string_view kConjugate = "conj";
constexpr absl::string_view kFactorWanted =
    "a tensor, a scalar, a number, conj() or '('";

/// Reads by recursive descent, a function a rule; it descends where parentheses
/// open.
class Parser {
 public:
  Parser(absl::string_view text, const NotationLimits& limits)
      : limits_(limits), scanner_(text) {}

  absl::StatusOr<ProgramSyntax> ReadProgram();

 private:
  absl::StatusOr<Statement> ReadStatement();
  absl::StatusOr<Assignment> ReadAssignment();
  absl::StatusOr<Sum> ReadSum();
  absl::Status ReadTerm(Term& term);
  absl::StatusOr<Factor> ReadFactor();
  absl::StatusOr<Factor> ReadConjugate();
  absl::StatusOr<Sum> ReadGroup();
  /// A name with its labels. `colon` is where they are `[:]`, which null
  /// forbids.
  absl::StatusOr<TensorReference> ReadTensor(
      std::optional<TextPosition>* colon);
  absl::Status ReadLabels(TensorReference& tensor);
  absl::StatusOr<Label> ReadLabel();

  absl::Status Advance();
  absl::StatusOr<bool> TakeIf(absl::string_view symbol);
  absl::Status Take(absl::string_view symbol, absl::string_view wanted);
  /// Signs that change a term's, one after another.
  absl::Status TakeSigns(Term& term);
  absl::Status CountFactor();

  template <typename... Wanted>
  absl::Status Unexpected(const Wanted&... wanted) const {
    return ErrorAt(token_.position, "SYNTAX_ERROR", "got ", Shown(token_),
                   ", wanted ", wanted...);
  }

  const NotationLimits& limits_;
  Scanner scanner_;
  Token token_;  // to be read next
  int64_t depth_ = 0;
  int64_t factor_count_ = 0;  // of the outermost term
};

absl::Status Parser::Advance() {
  TENSORD_ASSIGN_OR_RETURN(token_, scanner_.Next());
  return absl::OkStatus();
}

absl::StatusOr<bool> Parser::TakeIf(absl::string_view symbol) {
  if (!token_.Is(symbol)) return false;
  TENSORD_RETURN_IF_ERROR(Advance());
  return true;
}

absl::Status Parser::Take(absl::string_view symbol, absl::string_view wanted) {
  if (!token_.Is(symbol)) return Unexpected(wanted);
  return Advance();
}

absl::StatusOr<ProgramSyntax> Parser::ReadProgram() {
  ProgramSyntax program;
  TENSORD_RETURN_IF_ERROR(Advance());
  while (token_.kind != Token::Kind::kEndOfText) {
    if (token_.kind == Token::Kind::kEndOfStatement) {
      TENSORD_RETURN_IF_ERROR(Advance());
      continue;
    }
    if (program.statements.size() == limits_.max_statements) {
      return ErrorAt(token_.position, "PROGRAM_TOO_LONG",
                     "a further statement begins, the limit is ",
                     limits_.max_statements, " statements");
    }
    TENSORD_ASSIGN_OR_RETURN(program.statements.emplace_back(),
                             ReadStatement());
  }
  return program;
}

absl::StatusOr<Statement> Parser::ReadStatement() {
  if (token_.kind != Token::Kind::kName) {
    const bool is_operator =
        token_.Is("+") || token_.Is("-") || token_.Is("*") || token_.Is("/");
    return Unexpected("a statement such as D[i,j] = A[i,k]*B[k,j]",
                      is_operator ? "; a statement goes on in the next line "
                                    "when the line ends with the operator"
                                  : "");
  }
  Statement statement;
  std::optional<TextPosition> colon;
  TENSORD_ASSIGN_OR_RETURN(statement.output, ReadTensor(&colon));
  TENSORD_ASSIGN_OR_RETURN(statement.assignment, ReadAssignment());
  TENSORD_ASSIGN_OR_RETURN(statement.value, ReadSum());
  if (!token_.IsEnd()) {
    return Unexpected("an operator or the end of the statement",
                      token_.Is("(") ? "; the only function is conj()" : "");
  }
  TENSORD_RETURN_IF_ERROR(ApplyLabelRules(colon, limits_, statement));
  return statement;
}

absl::StatusOr<Assignment> Parser::ReadAssignment() {
  constexpr std::pair<absl::string_view, Assignment> kAssignments[] = {
      {"=", Assignment::kStore},
      {":=", Assignment::kCreate},
      {"+=", Assignment::kAdd},
      {"-=", Assignment::kSubtract}};
  for (const auto& [symbol, assignment] : kAssignments) {
    TENSORD_ASSIGN_OR_RETURN(const bool is_it, TakeIf(symbol));
    if (is_it) return assignment;
  }
  return Unexpected("'=', ':=', '+=' or '-=' behind the output");
}

absl::StatusOr<Sum> Parser::ReadSum() {
  Sum sum;
  bool is_negated = false;
  while (true) {
    Term& term = sum.terms.emplace_back();
    term.is_negated = is_negated;
    TENSORD_RETURN_IF_ERROR(ReadTerm(term));
    if (!token_.Is("+") && !token_.Is("-")) return sum;
    is_negated = token_.Is("-");
    TENSORD_RETURN_IF_ERROR(Advance());
  }
}

absl::Status Parser::TakeSigns(Term& term) {
  while (token_.Is("+") || token_.Is("-")) {
    if (token_.Is("-")) term.is_negated = !term.is_negated;
    TENSORD_RETURN_IF_ERROR(Advance());
  }
  return absl::OkStatus();
}

absl::Status Parser::ReadTerm(Term& term) {
  term.position = token_.position;
  if (depth_ == 0) factor_count_ = 0;
  bool is_divisor = false;
  while (true) {
    TENSORD_RETURN_IF_ERROR(TakeSigns(term));
    TENSORD_ASSIGN_OR_RETURN(Factor factor, ReadFactor());
    factor.is_divisor = is_divisor;
    const auto* const tensor = std::get_if<TensorReference>(&factor.value);
    if (is_divisor && (factor.group() || (tensor && tensor->has_brackets))) {
      return ErrorAt(factor.position, "SYNTAX_ERROR", "got ",
                     tensor ? "a tensor with brackets" : "parentheses",
                     " behind '/', wanted a number or a scalar's name");
    }
    term.factors.push_back(std::move(factor));
    if (!token_.Is("*") && !token_.Is("/")) return absl::OkStatus();
    is_divisor = token_.Is("/");
    TENSORD_RETURN_IF_ERROR(Advance());
  }
}

absl::Status Parser::CountFactor() {
  if (++factor_count_ <= limits_.max_factors) return absl::OkStatus();
  return ErrorAt(token_.position, "PROGRAM_TOO_LONG",
                 "a further factor begins, the limit is ", limits_.max_factors,
                 " factors in a term");
}

absl::StatusOr<Factor> Parser::ReadFactor() {
  TENSORD_RETURN_IF_ERROR(CountFactor());
  Factor factor;
  factor.position = token_.position;
  if (token_.Is("(")) {
    TENSORD_ASSIGN_OR_RETURN(Sum sum, ReadGroup());
    factor.value.emplace<std::vector<Sum>>().push_back(std::move(sum));
  } else if (token_.kind == Token::Kind::kNumber) {
    factor.value = token_.number;
    TENSORD_RETURN_IF_ERROR(Advance());
  } else if (token_.kind != Token::Kind::kName) {
    return Unexpected(kFactorWanted);
  } else if (token_.text == kConjugate) {
    return ReadConjugate();
  } else {
    TENSORD_ASSIGN_OR_RETURN(factor.value, ReadTensor(nullptr));
  }
  return factor;
}

absl::StatusOr<Factor> Parser::ReadConjugate() {
  Factor factor;
  factor.position = token_.position;
  TENSORD_RETURN_IF_ERROR(Advance());
  if (!token_.Is("(")) return Unexpected("'(' behind conj");
  TENSORD_ASSIGN_OR_RETURN(Sum sum, ReadGroup());
  Term& term = sum.terms.front();
  if (sum.terms.size() == 1 && term.factors.size() == 1 && !term.is_negated) {
    factor.value = std::move(term.factors.front().value);
    factor.is_conjugated = !term.factors.front().is_conjugated;
  } else {
    factor.value.emplace<std::vector<Sum>>().push_back(std::move(sum));
    factor.is_conjugated = true;
  }
  return factor;
}

absl::StatusOr<Sum> Parser::ReadGroup() {
  if (depth_ == limits_.max_depth) {
    return ErrorAt(token_.position, "PROGRAM_TOO_DEEP",
                   "parentheses open inside ", depth_,
                   " others, the limit is a depth of ", limits_.max_depth);
  }
  ++depth_;
  TENSORD_RETURN_IF_ERROR(Advance());
  TENSORD_ASSIGN_OR_RETURN(Sum sum, ReadSum());
  TENSORD_RETURN_IF_ERROR(Take(")", "an operator or ')'"));
  --depth_;
  return sum;
}

absl::StatusOr<TensorReference> Parser::ReadTensor(
    std::optional<TextPosition>* colon) {
  TensorReference tensor;
  tensor.name = std::string(token_.text);
  tensor.position = token_.position;
  if (tensor.name == kConjugate) {
    return ErrorAt(token_.position, "SYNTAX_ERROR",
                   "got 'conj', a function's name, wanted another");
  }
  TENSORD_RETURN_IF_ERROR(Advance());
  TENSORD_ASSIGN_OR_RETURN(tensor.has_brackets, TakeIf("["));
  if (!tensor.has_brackets) return tensor;
  if (colon != nullptr && token_.Is(":")) {
    *colon = token_.position;
    TENSORD_RETURN_IF_ERROR(Advance());
    TENSORD_RETURN_IF_ERROR(Take("]", "']' behind '[:'"));
    return tensor;
  }
  TENSORD_ASSIGN_OR_RETURN(const bool is_empty, TakeIf("]"));
  if (!is_empty) TENSORD_RETURN_IF_ERROR(ReadLabels(tensor));
  return tensor;
}

absl::Status Parser::ReadLabels(TensorReference& tensor) {
  while (true) {
    if (tensor.labels.size() == limits_.max_labels) {
      return ErrorAt(token_.position, "PROGRAM_TOO_LONG",
                     "a further label begins, the limit is ",
                     limits_.max_labels, " labels in a tensor");
    }
    TENSORD_ASSIGN_OR_RETURN(tensor.labels.emplace_back(), ReadLabel());
    TENSORD_ASSIGN_OR_RETURN(const bool is_end, TakeIf("]"));
    if (is_end) return absl::OkStatus();
    TENSORD_RETURN_IF_ERROR(Take(",", "',' or ']' behind a label"));
  }
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
    return Unexpected("a label: a name, an integer or a quoted character");
  }
  TENSORD_RETURN_IF_ERROR(Advance());
  return label;
}

}  // namespace

absl::StatusOr<ProgramSyntax> ParseProgram(absl::string_view text,
                                           const NotationLimits& limits) {
  if (text.size() > limits.max_text_bytes) {
    return ErrorAt({}, "PROGRAM_TOO_LONG", "the text has ", text.size(),
                   " bytes, the limit is ", limits.max_text_bytes);
  }
  return Parser(text, limits).ReadProgram();
}

}  // namespace tensord::core
