// Functions of whole tensors.
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status.h"
#include "core/notation/characters.h"
#include "core/notation/parser.h"

namespace tensord::core {
namespace {

/// "u, s and v".
std::string NamesOf(FactorizationMethod method, bool has_values) {
  const auto names = ResultNamesOf(method, has_values);
  if (names.size() == 1) return std::string(names[0]);
  return absl::StrCat(absl::StrJoin(names.first(names.size() - 1), ", "),
                      " and ", names.back());
}

/// What may follow the arguments, but for the parenthesis.
absl::string_view OptionWanted(const StatementCall& call) {
  if (call.along) return ", or ';' in front of options such as along=i";
  if (call.solves()) {
    return ", or ';' in front of options such as structure=hermitian";
  }
  return *call.method == FactorizationMethod::kSvd
             ? ", or ';' in front of options such as cutoff=1e-10"
             : "";
}

/// OK when the statement has as many outputs as the call results.
absl::Status CheckResultCount(const Statement& statement) {
  const StatementCall& call = *statement.call;
  const size_t count = statement.outputs().size();
  std::string wanted = "one";
  size_t most = 1;
  bool may_absorb = false;
  if (call.method) {
    most = ResultNamesOf(*call.method, true).size();
    may_absorb = *call.method == FactorizationMethod::kSvd;
    wanted = NamesOf(*call.method, true);
    if (may_absorb) {
      absl::StrAppend(&wanted, ", or with absorb ",
                      NamesOf(*call.method, false));
    }
  }
  if (count == most || (may_absorb && count + 1 == most)) {
    return absl::OkStatus();
  }
  return ErrorAt(statement.output.position, "RESULT_COUNT_MISMATCH", "got ",
                 count, count == 1 ? " result of " : " results of ",
                 NotationOf(call), "(), wanted ", wanted);
}

}  // namespace

absl::Status Parser::ReadOtherOutputs(Statement& statement) {
  while (token_.Is(",")) {
    TENSORD_RETURN_IF_ERROR(Advance());
    if (token_.kind != Token::Kind::kName) {
      return Unexpected("a further result, such as R[k,j]");
    }
    std::optional<TextPosition> colon;
    TENSORD_ASSIGN_OR_RETURN(TensorReference other, ReadOutput(colon));
    if (colon) {
      return ErrorAt(*colon, "SYNTAX_ERROR",
                     "got ':', wanted labels of each of several results");
    }
    statement.others.push_back(std::move(other));
  }
  return absl::OkStatus();
}

absl::StatusOr<const StatementFunction*> Parser::PeekStatementFunction() const {
  if (token_.kind != Token::Kind::kName) return nullptr;
  const StatementFunction* const function = FindStatementFunction(token_.text);
  if (function == nullptr) return nullptr;
  Scanner ahead = scanner_;
  TENSORD_ASSIGN_OR_RETURN(const Token next, ahead.Next());
  return next.Is("(") ? function : nullptr;
}

absl::Status Parser::ReadStatementCall(const StatementFunction& function,
                                       Statement& statement) {
  if (statement.assignment == Assignment::kAdd ||
      statement.assignment == Assignment::kSubtract) {
    return Unexpected("':=' or '=' in front of it");
  }
  StatementCall& call = statement.call.emplace();
  call.method = function.method;
  call.along = function.along;
  call.function = function.function;
  call.position = token_.position;
  TENSORD_RETURN_IF_ERROR(Advance());
  TENSORD_RETURN_IF_ERROR(Descend());
  while (true) {
    factor_count_ = 0;
    TENSORD_ASSIGN_OR_RETURN(call.arguments.emplace_back(), ReadExpression());
    if (std::ssize(call.arguments) == function.argument_count) break;
    TENSORD_RETURN_IF_ERROR(Take(
        ",",
        absl::StrCat("',' behind argument ", call.arguments.size(), " of ",
                     function.argument_count, " of ", function.name, "()")));
  }
  TENSORD_RETURN_IF_ERROR(CheckResultCount(statement));
  bool has_option = token_.kind == Token::Kind::kEndOfStatement;
  while (has_option) {
    TENSORD_RETURN_IF_ERROR(Advance());
    TENSORD_RETURN_IF_ERROR(ReadCallOption(call));
    has_option = token_.Is(",");
  }
  --depth_;
  return Take(")", call.options.empty()
                       ? absl::StrCat("')'", OptionWanted(call))
                       : "',' or ')' behind an option");
}

absl::Status Parser::ReadCallOption(StatementCall& call) {
  if (token_.kind != Token::Kind::kName) {
    return Unexpected("an option such as ",
                      call.along ? "along=i" : "cutoff=1e-10");
  }
  CallOption& option = call.options.emplace_back();
  option.name = std::string(token_.text);
  option.position = token_.position;
  TENSORD_RETURN_IF_ERROR(Advance());
  TENSORD_RETURN_IF_ERROR(
      Take("=", absl::StrCat("'=' behind option ", Quoted(option.name))));
  if (call.along && option.name == "along") {
    TENSORD_ASSIGN_OR_RETURN(Label label, ReadLabel());
    option.value = std::move(label.text);
    return absl::OkStatus();
  }
  if (token_.kind == Token::Kind::kName) {
    option.value = std::string(token_.text);
    return Advance();
  }
  Term signs;
  TENSORD_RETURN_IF_ERROR(TakeSigns(signs));
  if (token_.kind != Token::Kind::kNumber || token_.number.imaginary != 0) {
    return Unexpected("a real number, a scalar or a word for ",
                      Quoted(option.name));
  }
  option.value = signs.is_negated ? -token_.number.real : token_.number.real;
  return Advance();
}

}  // namespace tensord::core
