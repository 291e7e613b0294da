#include "tests/unit/core/notation/syntax_dump.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/notation/functions.h"

namespace tensord::core::test {
namespace {

struct JoinText {
  void operator()(std::string* out, const Label& label) const {
    *out += label.text;
  }
};

/// Texts begin with their length, so that they cannot be taken for two.
std::string Delimited(const std::string& text) {
  return absl::StrCat(text.size(), ":", text);
}

std::string DumpTensor(const TensorReference& tensor) {
  std::string text = absl::StrCat(tensor.is_diagonal ? "diagonal " : "tensor ",
                                  Delimited(tensor.name),
                                  tensor.has_brackets ? " with" : " without");
  for (const Label& label : tensor.labels) {
    absl::StrAppend(&text, " ", Delimited(label.text));
  }
  return text;
}

std::string DumpFactor(const Factor& factor) {
  std::string text = factor.is_divisor ? "divided by " : "times ";
  if (factor.is_conjugated) text += "conjugate ";
  if (factor.is_scalar) text += "scalar ";
  if (const Sum* group = factor.group()) {
    absl::StrAppend(&text, "(\n", Dump(*group), ")");
  } else if (const Call* call = factor.call()) {
    absl::StrAppend(&text, "function ", call->function.index(), " ",
                    std::visit([](auto op) { return static_cast<int>(op); },
                               call->function));
    absl::StrAppend(&text, " ", Delimited(call->taken));
    for (const std::string& label : call->labels) {
      absl::StrAppend(&text, " ", Delimited(label));
    }
    for (const Sum& argument : call->arguments) {
      absl::StrAppend(&text, "(\n", Dump(argument), ")");
    }
  } else if (const auto* scalar = std::get_if<Scalar>(&factor.value)) {
    absl::StrAppendFormat(&text, "number %a %a", scalar->real,
                          scalar->imaginary);
  } else {
    text += DumpTensor(std::get<TensorReference>(factor.value));
  }
  return text;
}

}  // namespace

std::string Dump(const Sum& sum) {
  std::string text = "sum";
  for (const std::string& label : sum.labels) {
    absl::StrAppend(&text, " ", Delimited(label));
  }
  for (const Term& term : sum.terms) {
    absl::StrAppend(&text, term.is_negated ? "\nminus" : "\nplus",
                    term.is_ncon ? " ncon" : "");
    for (const Factor& factor : term.factors) {
      absl::StrAppend(&text, "\n  ", DumpFactor(factor));
    }
  }
  return text;
}

std::string Dump(const ProgramSyntax& program) {
  std::string text;
  for (const Statement& statement : program.statements) {
    for (const TensorReference* const output : statement.outputs()) {
      absl::StrAppend(&text, DumpTensor(*output), " ");
    }
    absl::StrAppend(&text, "assigned ", static_cast<int>(statement.assignment),
                    " ");
    if (statement.call) {
      absl::StrAppend(&text, NotationOf(*statement.call), " ");
      for (const CallOption& option : statement.call->options) {
        absl::StrAppend(&text, option.name, " ");
        if (const auto* number = std::get_if<double>(&option.value)) {
          absl::StrAppendFormat(&text, "%.17g ", *number);
        } else {
          absl::StrAppend(&text, std::get<std::string>(option.value), " ");
        }
      }
    }
    for (const Sum& part : statement.parts()) {
      absl::StrAppend(&text, Dump(part), "\n");
    }
  }
  return text;
}

std::string Dump(const Labels& labels) {
  return absl::StrJoin(labels, ",", JoinText());
}

std::string Dump(const EinsumSyntax& einsum) {
  const auto append = [](std::string* out, const Labels& labels) {
    *out += Dump(labels);
  };
  return absl::StrCat(
      absl::StrJoin(einsum.inputs, "|", append), " -> ", Dump(einsum.output),
      einsum.order.empty() ? "" : " order ", absl::StrJoin(einsum.order, ","));
}

}  // namespace tensord::core::test
