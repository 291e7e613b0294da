#include "core/notation/to_text.h"

#include <charconv>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/notation/characters.h"
#include "core/notation/functions.h"

namespace tensord::core {
namespace {

void Append(const Sum& sum, std::string& text);

/// The shortest decimal number that is read as this one.
void Append(double number, std::string& text) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), number);
  text.append(digits, end.ptr);
}

void Append(const Scalar& scalar, std::string& text) {
  Append(scalar.imaginary == 0 ? scalar.real : scalar.imaginary, text);
  if (scalar.imaginary != 0) text += "im";
}

void Append(const TensorReference& tensor, std::string& text) {
  if (tensor.is_diagonal) {
    absl::StrAppend(&text, "Diagonal(", tensor.name, ")");
  } else {
    text += tensor.name;
  }
  if (!tensor.has_brackets) return;
  const auto append_label = [](std::string* out, const Label& label) {
    *out += ToText(label);
  };
  absl::StrAppend(&text, "[", absl::StrJoin(tensor.labels, ",", append_label),
                  "]");
}

/// One factor alone in conj() is itself conjugated, so a group of one keeps its
/// parentheses there.
bool NeedsParentheses(const Factor& factor) {
  const Sum* const group = factor.group();
  if (group == nullptr) return false;
  if (factor.is_scalar) return true;
  const Term& first = group->terms.front();
  return !factor.is_conjugated ||
         (group->terms.size() == 1 && first.factors.size() == 1 &&
          !first.is_negated);
}

/// `max(A[i],2)`, `(A[i])^(2)`, `(A[i] < 2)`.
void Append(const Call& call, std::string& text) {
  if (!call.taken.empty()) {
    Append(call.arguments[0], text);
    return;
  }
  const absl::string_view notation = NotationOf(call.function);
  const bool is_power = call.function == ElementFunction(BinaryOperator::kPow);
  const bool is_infix = IsInfix(call.function);
  absl::StrAppend(&text, is_infix ? "" : notation, "(");
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (i > 0 && is_power) {
      absl::StrAppend(&text, ")", notation, "(");
    } else if (i > 0 && is_infix) {
      absl::StrAppend(&text, " ", notation, " ");
    } else if (i > 0) {
      text += ",";
    }
    Append(call.arguments[i], text);
  }
  text += ")";
}

void Append(const Factor& factor, std::string& text) {
  if (factor.is_conjugated) text += "conj(";
  if (factor.is_scalar) text += "tensorscalar";
  if (NeedsParentheses(factor)) text += "(";
  if (const Sum* const group = factor.group()) {
    Append(*group, text);
  } else if (const Call* const call = factor.call()) {
    Append(*call, text);
  } else if (const auto* scalar = std::get_if<Scalar>(&factor.value)) {
    Append(*scalar, text);
  } else {
    Append(std::get<TensorReference>(factor.value), text);
  }
  if (NeedsParentheses(factor)) text += ")";
  if (factor.is_conjugated) text += ")";
}

void Append(const Sum& sum, std::string& text) {
  for (const Term& term : sum.terms) {
    if (&term != &sum.terms.front()) {
      text += term.is_negated ? " - " : " + ";
    } else if (term.is_negated) {
      text += "-";
    }
    for (const Factor& factor : term.factors) {
      if (&factor != &term.factors.front()) {
        text += factor.is_divisor ? "/" : "*";
      }
      Append(factor, text);
    }
  }
}

absl::string_view SymbolOf(Assignment assignment) {
  switch (assignment) {
    case Assignment::kStore: return "=";
    case Assignment::kCreate: return ":=";
    case Assignment::kAdd: return "+=";
    case Assignment::kSubtract: return "-=";
  }
  return "";
}

/// `svd(A[i,j]; rank=2)`.
void Append(const StatementCall& call, std::string& text) {
  absl::StrAppend(&text, NotationOf(call), "(");
  for (const Sum& argument : call.arguments) {
    if (&argument != &call.arguments.front()) text += ",";
    Append(argument, text);
  }
  for (const CallOption& option : call.options) {
    text += &option == &call.options.front() ? "; " : ", ";
    absl::StrAppend(&text, option.name, "=");
    if (const auto* const number = std::get_if<double>(&option.value)) {
      Append(*number, text);
    } else {
      text += std::get<std::string>(option.value);
    }
  }
  text += ")";
}

}  // namespace

std::string ToText(const Sum& sum) {
  std::string text;
  Append(sum, text);
  return text;
}

std::string ToText(const Label& label) {
  const size_t end = label.text.find("]#");
  return end == std::string::npos ? label.text : label.text.substr(0, end + 1);
}

std::string ToText(const TensorReference& reference) {
  std::string text;
  Append(reference, text);
  return text;
}

std::string ToText(const Factor& factor) {
  std::string text;
  Append(factor, text);
  return text;
}

std::string RolesOf(const StatementCall& call) {
  std::string roles = absl::StrCat(NotationOf(call), "() of");
  absl::string_view role = " a = ";
  for (const Sum& argument : call.arguments) {
    absl::StrAppend(&roles, role, Quoted(ToText(argument)));
    role = " and b = ";
  }
  return absl::StrCat(roles, ": ");
}

std::string ToText(const Statement& statement) {
  std::string text;
  for (const TensorReference* const output : statement.outputs()) {
    if (output != &statement.output) text += ", ";
    Append(*output, text);
  }
  absl::StrAppend(&text, " ", SymbolOf(statement.assignment), " ");
  if (statement.call) {
    Append(*statement.call, text);
  } else {
    Append(statement.value, text);
  }
  return text;
}

std::string ToText(const ProgramSyntax& program) {
  std::string text;
  for (const Statement& statement : program.statements) {
    absl::StrAppend(&text, ToText(statement), "\n");
  }
  return text;
}

}  // namespace tensord::core
