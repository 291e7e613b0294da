#include "core/notation/parse_program.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/notation/characters.h"
#include "core/notation/forms.h"
#include "core/notation/functions.h"
#include "core/notation/label_rules.h"
#include "core/notation/parser.h"
#include "core/notation/text_error.h"

namespace tensord::core {
namespace {

constexpr absl::string_view kConjugate = "conj";
constexpr absl::string_view kAdjoint = "adjoint";
constexpr absl::string_view kTensorscalar = "tensorscalar";
constexpr absl::string_view kScalar = "scalar";
constexpr absl::string_view kNorm = "norm";
constexpr absl::string_view kDiagonal = "Diagonal";
constexpr absl::string_view kFactorWanted =
    "a tensor, a scalar, a number, a function or '('";

/// The comparison that a symbol stands for.
std::optional<BinaryOperator> ComparisonOf(const Token& token) {
  constexpr BinaryOperator kComparisons[] = {
      BinaryOperator::kEqual,   BinaryOperator::kNotEqual,
      BinaryOperator::kLess,    BinaryOperator::kLessEqual,
      BinaryOperator::kGreater, BinaryOperator::kGreaterEqual};
  for (const BinaryOperator op : kComparisons) {
    if (token.Is(NotationOf(op))) return op;
  }
  return std::nullopt;
}

bool IsPower(const Token& token) { return token.Is("^") || token.Is("**"); }

/// How often labels occur.
using Counts = std::map<std::string, int>;

/// Whether a factor whose parts have labels so often has them for itself.
bool AreOwn(const Factor& factor, const Counts& inside) {
  return factor.is_scalar ||
         (factor.is_divisor && !factor.parts().empty() &&
          std::ranges::all_of(
              inside, [](const auto& counted) { return counted.second == 2; }));
}

/// Of terms that which has a label most often counts.
Counts CountsOf(std::span<const Sum> sums) {
  Counts most;
  for (const Sum& sum : sums) {
    for (const Term& term : sum.terms) {
      Counts counts;
      for (const Factor& factor : term.factors) {
        const Counts inside = CountsOf(factor.parts());
        if (AreOwn(factor, inside)) continue;
        for (const auto& [label, count] : inside) counts[label] += count;
        if (const auto* const tensor =
                std::get_if<TensorReference>(&factor.value)) {
          for (const Label& label : tensor->labels) ++counts[label.text];
        }
      }
      for (const auto& [label, count] : counts) {
        most[label] = std::max(most[label], count);
      }
    }
  }
  return most;
}

/// Others for those labels that are summed, having occurred twice: larger
/// numbers, in the same order, or `sum1`, `sum2`, ...
std::map<std::string, std::string> OthersFor(const Counts& counts) {
  std::map<int64_t, std::string> summed;  // those that are numbers
  int64_t largest = 0;
  std::map<std::string, std::string> others;
  int named = 0;
  for (const auto& [label, count] : counts) {
    int64_t number = 0;
    const bool is_number = absl::SimpleAtoi(label, &number);
    if (is_number) largest = std::max(largest, number);
    if (count < 2) continue;
    if (is_number) {
      summed[number] = label;
      continue;
    }
    std::string& other = others[label];
    do {
      other = absl::StrCat("sum", ++named);
    } while (counts.contains(other));
  }
  for (const auto& [number, label] : summed) {
    if (largest == std::numeric_limits<int64_t>::max()) largest = -largest;
    others[label] = absl::StrCat(++largest);
  }
  return others;
}

/// Gives labels other names.
void Rename(const std::map<std::string, std::string>& others,
            std::span<Sum> sums) {
  for (Sum& sum : sums) {
    for (Term& term : sum.terms) {
      for (Factor& factor : term.factors) {
        if (AreOwn(factor, CountsOf(factor.parts()))) continue;
        Rename(others, factor.parts());
        auto* const tensor = std::get_if<TensorReference>(&factor.value);
        if (tensor == nullptr) continue;
        for (Label& label : tensor->labels) {
          const auto other = others.find(label.text);
          if (other != others.end()) label.text = other->second;
        }
      }
    }
  }
}

}  // namespace

absl::Status Parser::Advance() {
  last_end_ = token_.text.data() + token_.text.size();
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
    const bool is_operator = token_.Is("+") || token_.Is("-") ||
                             token_.Is("*") || token_.Is("/") ||
                             token_.Is("\\");
    return Unexpected("a statement such as D[i,j] = A[i,k]*B[k,j]",
                      is_operator ? "; a statement goes on in the next line "
                                    "when the line ends with the operator"
                                  : "");
  }
  Statement statement;
  std::optional<TextPosition> colon;
  TENSORD_ASSIGN_OR_RETURN(statement.output, ReadOutput(colon));
  TENSORD_RETURN_IF_ERROR(ReadOtherOutputs(statement));
  TENSORD_ASSIGN_OR_RETURN(statement.assignment, ReadAssignment());
  TENSORD_ASSIGN_OR_RETURN(const StatementFunction* const function,
                           PeekStatementFunction());
  if (function != nullptr) {
    TENSORD_RETURN_IF_ERROR(ReadStatementCall(*function, statement));
  } else if (!statement.others.empty()) {
    return ErrorAt(token_.position, "SYNTAX_ERROR", "got ", Shown(token_), ",",
                   NearestFunction(token_.text),
                   " wanted qr(), lq(), svd() or eigh(), which have several "
                   "results");
  } else {
    TENSORD_ASSIGN_OR_RETURN(statement.value, ReadExpression());
  }
  if (!token_.IsEnd()) {
    if (function != nullptr) {
      return Unexpected("the end of the statement, as ", function->name,
                        "() is all of it");
    }
    return Unexpected("an operator or the end of the statement");
  }
  TENSORD_RETURN_IF_ERROR(ApplyLabelRules(colon, limits_, statement));
  return statement;
}

absl::StatusOr<Assignment> Parser::ReadAssignment() {
  constexpr std::pair<absl::string_view, Assignment> kAssignments[] = {
      {"=", Assignment::kStore},
      {":=", Assignment::kCreate},
      {"≔", Assignment::kCreate},
      {"+=", Assignment::kAdd},
      {"-=", Assignment::kSubtract}};
  for (const auto& [symbol, assignment] : kAssignments) {
    TENSORD_ASSIGN_OR_RETURN(const bool is_it, TakeIf(symbol));
    if (is_it) return assignment;
  }
  return Unexpected("'=', ':=', '+=' or '-=' behind the output");
}

absl::StatusOr<Sum> Parser::ReadExpression() {
  const TextPosition position = token_.position;
  TENSORD_ASSIGN_OR_RETURN(Sum sum, ReadSum());
  const auto comparison = ComparisonOf(token_);
  if (!comparison) return sum;
  Factor factor;
  factor.position = position;
  Call& call = factor.value.emplace<Call>();
  call.function = *comparison;
  TENSORD_RETURN_IF_ERROR(Advance());
  call.arguments.push_back(std::move(sum));
  TENSORD_ASSIGN_OR_RETURN(call.arguments.emplace_back(), ReadSum());
  if (ComparisonOf(token_)) {
    return Unexpected(
        "one comparison of two sides; of three it is written "
        "(a < b)*(b < c)");
  }
  return SumOf(std::move(factor));
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
  std::vector<Factor> factors;
  std::vector<size_t> starts;  // of `factors`, behind a `\`
  while (true) {
    TENSORD_RETURN_IF_ERROR(TakeSigns(term));
    TENSORD_ASSIGN_OR_RETURN(Factor factor, ReadFactor());
    factor.is_divisor = is_divisor;
    factors.push_back(std::move(factor));
    if (token_.Is("\\")) {
      starts.push_back(factors.size());
    } else if (!token_.Is("*") && !token_.Is("/")) {
      break;
    }
    is_divisor = token_.Is("/");
    TENSORD_RETURN_IF_ERROR(Advance());
  }
  term.factors = ProductOf(std::move(factors), starts);
  return absl::OkStatus();
}

absl::Status Parser::CountFactor() {
  if (++factor_count_ <= limits_.max_factors) return absl::OkStatus();
  return ErrorAt(token_.position, "PROGRAM_TOO_LONG",
                 "a further factor begins, the limit is ", limits_.max_factors,
                 " factors in a term");
}

absl::StatusOr<Factor> Parser::ReadFactor() {
  TENSORD_ASSIGN_OR_RETURN(Factor factor, ReadBase());
  while (token_.Is("'")) {
    Conjugate(factor);
    TENSORD_RETURN_IF_ERROR(Advance());
  }
  if (IsPower(token_)) TENSORD_RETURN_IF_ERROR(ReadExponent(factor));
  return factor;
}

absl::Status Parser::ReadExponent(Factor& factor) {
  Factor power;
  power.position = factor.position;
  Call& call = power.value.emplace<Call>();
  call.function = BinaryOperator::kPow;
  const auto add_argument = [&](Factor argument, bool is_negated) {
    auto* const groups = std::get_if<std::vector<Sum>>(&argument.value);
    const bool is_plain = groups != nullptr && !argument.is_scalar &&
                          !argument.is_conjugated && !is_negated;
    call.arguments.push_back(is_plain ? std::move(groups->front())
                                      : SumOf(std::move(argument)));
    if (is_negated) call.arguments.back().terms[0].is_negated = true;
  };
  add_argument(std::move(factor), false);
  TENSORD_RETURN_IF_ERROR(Descend());
  Term signs;
  TENSORD_RETURN_IF_ERROR(TakeSigns(signs));
  TENSORD_ASSIGN_OR_RETURN(Factor exponent, ReadFactor());
  add_argument(std::move(exponent), signs.is_negated);
  --depth_;
  factor = std::move(power);
  return absl::OkStatus();
}

absl::StatusOr<Factor> Parser::ReadBase() {
  TENSORD_RETURN_IF_ERROR(CountFactor());
  Factor factor;
  factor.position = token_.position;
  if (token_.Is("(")) {
    TENSORD_RETURN_IF_ERROR(ReadGroup(factor));
  } else if (token_.kind == Token::Kind::kNumber) {
    factor.value = token_.number;
    TENSORD_RETURN_IF_ERROR(Advance());
  } else if (token_.kind == Token::Kind::kName) {
    TENSORD_ASSIGN_OR_RETURN(factor, ReadNamed());
  } else {
    return Unexpected(kFactorWanted);
  }
  return factor;
}

absl::StatusOr<Factor> Parser::ReadNamed() {
  Factor factor;
  factor.position = token_.position;
  TensorReference tensor;
  tensor.name = std::string(token_.text);
  tensor.position = token_.position;
  TENSORD_RETURN_IF_ERROR(Advance());
  const bool is_call = token_.Is("(");
  if (tensor.name == kConjugate || (is_call && tensor.name == kAdjoint)) {
    if (!is_call) return Unexpected("'(' behind conj");
    TENSORD_RETURN_IF_ERROR(ReadGroup(factor));
    Conjugate(factor);
    return factor;
  }
  if (is_call && (tensor.name == kTensorscalar || tensor.name == kScalar)) {
    factor.is_scalar = true;
    TENSORD_RETURN_IF_ERROR(ReadGroup(factor));
    return factor;
  }
  if (is_call && tensor.name == kNorm) {
    TENSORD_RETURN_IF_ERROR(ReadNorm(factor));
    return factor;
  }
  if (is_call && tensor.name != kDiagonal) {
    TENSORD_RETURN_IF_ERROR(ReadCall(tensor, factor));
    return factor;
  }
  const size_t before = indices_.size();
  if (is_call) {
    TENSORD_RETURN_IF_ERROR(ReadDiagonal(tensor));
    TENSORD_RETURN_IF_ERROR(RefuseIndices(before, "behind Diagonal()"));
  } else {
    TENSORD_RETURN_IF_ERROR(ReadBrackets(tensor, nullptr));
  }
  return TakeAtIndices(std::move(tensor), before);
}

absl::Status Parser::ReadNorm(Factor& factor) {
  const int64_t before = factor_count_;
  Factor first;
  first.position = factor.position;
  TENSORD_RETURN_IF_ERROR(ReadGroup(first));
  // It stands twice in what is computed.
  for (int64_t count = factor_count_ - before; count > 0; --count) {
    TENSORD_RETURN_IF_ERROR(CountFactor());
  }
  Factor second = first;
  Rename(OthersFor(CountsOf(second.parts())), second.parts());
  Conjugate(first);
  const auto number = [&](double value) {
    Factor result;
    result.position = factor.position;
    result.value = Scalar{value};
    return result;
  };
  // A quarter of the squares: no integer, and so in a type with fractions.
  Sum squares = SumOf(number(0.25));
  squares.terms[0].factors.push_back(std::move(first));
  squares.terms[0].factors.push_back(std::move(second));
  const auto called = [&](UnaryOperator op, Sum argument) {
    Factor result;
    result.position = factor.position;
    Call& call = result.value.emplace<Call>();
    call.function = op;
    call.arguments.push_back(std::move(argument));
    return result;
  };
  Factor scalar;
  scalar.position = factor.position;
  scalar.is_scalar = true;
  scalar.value.emplace<std::vector<Sum>>().push_back(
      SumOf(called(UnaryOperator::kReal, std::move(squares))));
  Sum twice = SumOf(number(2));
  twice.terms[0].factors.push_back(
      called(UnaryOperator::kSqrt, SumOf(std::move(scalar))));
  factor.value.emplace<std::vector<Sum>>().push_back(std::move(twice));
  return absl::OkStatus();
}

absl::Status Parser::ReadDiagonal(TensorReference& tensor) {
  TENSORD_RETURN_IF_ERROR(Advance());
  if (token_.kind != Token::Kind::kName || token_.text == kConjugate) {
    return Unexpected("the name of a vector in Diagonal()");
  }
  tensor.name = std::string(token_.text);
  tensor.is_diagonal = true;
  TENSORD_RETURN_IF_ERROR(Advance());
  TENSORD_RETURN_IF_ERROR(
      Take(")", "')' behind the name of a vector in Diagonal()"));
  if (!token_.Is("[")) {
    return Unexpected("two labels behind Diagonal(), such as Diagonal(",
                      tensor.name, ")[i,j]");
  }
  TENSORD_RETURN_IF_ERROR(ReadBrackets(tensor, nullptr));
  if (tensor.labels.size() == 2) return absl::OkStatus();
  return ErrorAt(tensor.position, "SYNTAX_ERROR", "got Diagonal() with ",
                 tensor.labels.size(), " labels, wanted two");
}

absl::Status Parser::ReadCall(const TensorReference& name, Factor& factor) {
  const NamedFunction* const function = FindFunction(name.name);
  if (function == nullptr && FindStatementFunction(name.name) != nullptr) {
    return ErrorAt(name.position, "SYNTAX_ERROR", "got ", name.name,
                   "() in an expression, wanted it as all that a statement "
                   "assigns, and what follows in the next");
  }
  if (function == nullptr) {
    return ErrorAt(name.position, "SYNTAX_ERROR", "got ", Quoted(name.name),
                   " in front of '(',", NearestFunction(name.name),
                   " wanted a function such as sqrt(), max(), where() or "
                   "conj(); labels stand in [ ]");
  }
  Call& call = factor.value.emplace<Call>();
  call.function = function->function;
  TENSORD_RETURN_IF_ERROR(Descend());
  for (int i = 1;; ++i) {
    TENSORD_ASSIGN_OR_RETURN(call.arguments.emplace_back(), ReadExpression());
    if (i == function->argument_count) break;
    if (!token_.Is(",")) {
      return Unexpected("',' behind argument ", i, " of ",
                        function->argument_count, " of ", name.name, "()");
    }
    TENSORD_RETURN_IF_ERROR(Advance());
  }
  if (token_.Is(",")) {
    return Unexpected("')' behind argument ", function->argument_count,
                      ", which is ", name.name, "()'s last");
  }
  --depth_;
  return Take(")", "an operator or ')'");
}

absl::Status Parser::ReadGroup(Factor& factor) {
  TENSORD_RETURN_IF_ERROR(Descend());
  TENSORD_ASSIGN_OR_RETURN(Sum sum, ReadExpression());
  TENSORD_RETURN_IF_ERROR(Take(")", "an operator or ')'"));
  --depth_;
  factor.value.emplace<std::vector<Sum>>().push_back(std::move(sum));
  UnwrapComparison(factor);
  return absl::OkStatus();
}

absl::Status Parser::Descend() {
  if (depth_ == limits_.max_depth) {
    return ErrorAt(token_.position, "PROGRAM_TOO_DEEP",
                   token_.Is("(") ? "parentheses open" : "an exponent begins",
                   " inside ", depth_, " others, the limit is a depth of ",
                   limits_.max_depth);
  }
  ++depth_;
  return Advance();
}

absl::StatusOr<TensorReference> Parser::ReadOutput(
    std::optional<TextPosition>& colon) {
  TensorReference tensor;
  tensor.name = std::string(token_.text);
  tensor.position = token_.position;
  if (tensor.name == kConjugate) {
    return ErrorAt(token_.position, "SYNTAX_ERROR",
                   "got 'conj', a function's name, wanted another");
  }
  TENSORD_RETURN_IF_ERROR(Advance());
  const size_t before = indices_.size();
  TENSORD_RETURN_IF_ERROR(ReadBrackets(tensor, &colon));
  TENSORD_RETURN_IF_ERROR(RefuseIndices(before, "of an output"));
  return tensor;
}

absl::StatusOr<ProgramSyntax> ParseProgram(absl::string_view text,
                                           const NotationLimits& limits) {
  if (text.size() > limits.max_text_bytes) {
    return ErrorAt({}, "PROGRAM_TOO_LONG", "the text has ", text.size(),
                   " bytes, the limit is ", limits.max_text_bytes);
  }
  return Parser(text, limits).ReadProgram();
}

}  // namespace tensord::core
