#include "tests/unit/core/notation/random_program.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tensord::core::test {
namespace {

using Texts = std::vector<std::string>;

const Texts kNames = {"A", "B", "α", "conj_", "Ж'", "x1", "_", "字''", "im"};
const Texts kLetters = {"a", "b", "å", "β", "c'", "d''", "_e", "f1", "'f'"};
const Texts kBlanks = {"", "", "", " ", "\t", "  ", "\xc2\xa0"};
const Texts kSeparators = {" ", "\t", "\n ", "\xc2\xa0"};
const Texts kBreaks = {"\n", "\r\n", " # 1 + (\n", "\n\n "};
/// What is written and what is meant.
const std::vector<std::pair<std::string, Scalar>> kNumbers = {
    {"2", {2, 0}},
    {"0.5", {0.5, 0}},
    {".5", {0.5, 0}},
    {"3.", {3, 0}},
    {"1e-3", {0.001, 0}},
    {"2.5E+2", {250, 0}},
    {"0", {0, 0}},
    {"1im", {0, 1}},
    {"2.5j", {0, 2.5}},
    {"0.1", {0.1, 0}},
    {"1e300", {1e300, 0}},
    {"3e-320im", {0, 3e-320}},
    {"007", {7, 0}},
    {"1e22", {1e22, 0}},
    {"123456789.25", {123456789.25, 0}}};

/// The labels of `open` in the order in which a term has them.
void AppendInOrder(const Sum& sum, const Texts& open, Texts& found) {
  for (const Factor& factor : sum.terms.front().factors) {
    for (const Sum& part : factor.parts()) AppendInOrder(part, open, found);
    const auto* tensor = std::get_if<TensorReference>(&factor.value);
    if (tensor == nullptr) continue;
    for (const Label& label : tensor->labels) {
      if (std::ranges::count(open, label.text) == 1 &&
          std::ranges::count(found, label.text) == 0) {
        found.push_back(label.text);
      }
    }
  }
}

/// A comparison stands in parentheses, however many there are.
void Unwrap(Factor& factor) {
  const Sum* const group = factor.group();
  if (factor.is_scalar || group->terms.size() > 1) return;
  const Term& term = group->terms.front();
  const Call* const call = term.factors.front().call();
  if (term.is_negated || term.factors.size() > 1 || call == nullptr ||
      term.factors.front().is_conjugated) {
    return;
  }
  const auto* const op = std::get_if<BinaryOperator>(&call->function);
  if (op != nullptr && IsComparison(*op)) factor.value = Call(*call);
}

class Maker {
 public:
  explicit Maker(std::mt19937& rng) : rng_(rng) {}

  RandomProgram Make();

 private:
  int Below(int bound) {
    return std::uniform_int_distribution(0, bound - 1)(rng_);
  }
  bool Often(double share) { return std::bernoulli_distribution(share)(rng_); }
  template <typename T>
  const T& OneOf(const std::vector<T>& choices) {
    return choices[Below(static_cast<int>(choices.size()))];
  }

  /// A label that the statement has not yet.
  std::string NewLabel(bool is_open);
  void Write(const std::string& token) { text_ += token + OneOf(kBlanks); }
  /// Writes what a line may end with.
  void WriteOpen(const std::string& token) {
    Write(token);
    if (Often(0.05)) text_ += OneOf(kBreaks);
  }
  void WriteLabels(const Texts& labels);

  Statement MakeStatement();
  Sum MakeSum(const Texts& open, int depth);
  Term MakeTerm(const Texts& open, int depth);
  /// `labels` lie in it, perhaps in a group, where pairs are summed.
  Factor MakeFactor(const Texts& labels, int depth);
  Factor MakeGroup(const Texts& labels, int depth);
  TensorReference MakeTensor(const Texts& labels, bool may_be_diagonal);
  int MakeSigns();
  /// A function of a group, or a power of one.
  Factor MakeCall(const Texts& labels, int depth);
  /// A tensor with another one in place of a label.
  Factor MakeTaken(const Texts& labels);
  /// A factor without labels, as divisors are, behind its signs.
  Factor MakeScalar(int depth, bool& is_negated);
  /// What divides by being written before a `\`.
  std::vector<Factor> MakeLeftDivisors(int depth, bool& is_negated);

  std::mt19937& rng_;
  std::string text_;
  bool is_ncon_ = false;
  int label_count_ = 0;
};

std::string Maker::NewLabel(bool is_open) {
  const int number = ++label_count_;
  if (is_ncon_) return absl::StrCat(is_open ? -number : number);
  switch (Below(3)) {
    case 0: return absl::StrCat(is_open ? "" : "-", 10 + number);  // not NCON's
    case 1: return absl::StrCat("x", number);
    default:
      return number <= kLetters.size() ? kLetters[number - 1]
                                       : absl::StrCat("ŋ", number);
  }
}

void Maker::WriteLabels(const Texts& labels) {
  const bool has_commas = Often(0.6);
  const bool has_groups = !labels.empty() && Often(0.3);
  const size_t group =
      has_groups ? 1 + Below(static_cast<int>(labels.size())) : 0;
  const auto write = [&](size_t begin, size_t end) {
    // What is empty is written in parentheses.
    const bool is_tuple = begin == end || (has_groups && Often(0.3));
    if (is_tuple) WriteOpen("(");
    for (size_t i = begin; i < end; ++i) {
      Write(labels[i]);
      if (i + 1 == end) break;
      if (is_tuple || has_commas) {
        WriteOpen(",");
      } else {
        Write(OneOf(kSeparators));
      }
    }
    if (is_tuple) Write(")");
  };
  WriteOpen("[");
  if (has_groups) {
    write(0, group);
    WriteOpen(";");
    write(group, labels.size());
  } else if (!labels.empty()) {
    write(0, labels.size());
  }
  text_ += "]";
}

TensorReference Maker::MakeTensor(const Texts& labels, bool may_be_diagonal) {
  TensorReference tensor;
  tensor.name = OneOf(kNames);
  tensor.has_brackets = !labels.empty() || Often(0.5);
  for (const std::string& label : labels) tensor.labels.push_back({label, {}});
  tensor.is_diagonal = may_be_diagonal && labels.size() == 2 && Often(0.2);
  Write(tensor.is_diagonal ? absl::StrCat("Diagonal(", tensor.name, ")")
                           : tensor.name);
  if (tensor.has_brackets) WriteLabels(labels);
  return tensor;
}

/// How many times "-" is written.
int Maker::MakeSigns() {
  int negations = 0;
  while (Often(0.1)) {
    const bool is_minus = Often(0.5);
    negations += is_minus ? 1 : 0;
    WriteOpen(is_minus ? "-" : "+");
  }
  return negations;
}

Factor Maker::MakeGroup(const Texts& labels, int depth) {
  Factor factor;
  factor.is_conjugated = Often(0.3);
  factor.is_scalar = labels.empty() && Often(0.5);
  const bool is_primed = factor.is_conjugated && Often(0.5);
  if (factor.is_conjugated) {
    if (!is_primed) Write(Often(0.5) ? "conj" : "adjoint");
    WriteOpen("(");
  }
  if (factor.is_scalar) Write(Often(0.5) ? "tensorscalar" : "scalar");
  // conj() may lack parentheses of its own unless one factor alone is inside;
  // these have them.
  WriteOpen("(");
  factor.value.emplace<std::vector<Sum>>().push_back(
      MakeSum(labels, depth + 1));
  Write(")");
  if (factor.is_conjugated) Write(is_primed ? ")'" : ")");
  Unwrap(factor);
  return factor;
}

Factor Maker::MakeCall(const Texts& labels, int depth) {
  using Written = std::pair<std::string, ElementFunction>;
  static const std::vector<Written> kUnary = {{"sqrt", UnaryOperator::kSqrt},
                                              {"imag", UnaryOperator::kImag}};
  static const std::vector<Written> kOthers = {
      {"maximum", BinaryOperator::kMax},  {"where", BinaryOperator::kWhere},
      {"<=", BinaryOperator::kLessEqual}, {"!=", BinaryOperator::kNotEqual},
      {"**", BinaryOperator::kPow},       {"^", BinaryOperator::kPow}};
  Factor factor;
  Call call;
  const bool is_unary = Often(0.4);
  const auto& [name, function] = OneOf(is_unary ? kUnary : kOthers);
  call.function = function;
  const auto add = [&](const Texts& open) {
    call.arguments.push_back(MakeSum(open, depth + 1));
  };
  const bool is_power = function == ElementFunction(BinaryOperator::kPow);
  const bool is_infix = !is_unary && !absl::ascii_isalpha(name[0]);
  if (!is_infix) Write(name);
  WriteOpen("(");
  add(labels);
  if (is_power) {
    text_ += ")";
    Write("");
    WriteOpen(name);
    WriteOpen("(");
  } else if (!is_unary) {
    WriteOpen(is_infix ? name : ",");
  }
  // What lacks labels repeats.
  if (!is_unary) add(Often(0.5) ? labels : Texts());
  if (name == "where") {
    WriteOpen(",");
    add(Texts());
  }
  Write(")");
  for (const Sum& argument : call.arguments) {
    AppendInOrder(argument, labels, call.labels);
  }
  factor.value = std::move(call);
  return factor;
}

Factor Maker::MakeTaken(const Texts& labels) {
  const auto sum_of = [](TensorReference tensor, Texts open, bool is_ncon) {
    Sum sum;
    sum.labels = std::move(open);
    Term& term = sum.terms.emplace_back();
    term.has_labels = true;
    term.is_ncon = is_ncon;
    term.factors.emplace_back().value = std::move(tensor);
    return sum;
  };
  const int at = Below(static_cast<int>(labels.size()));
  TensorReference from, indices;
  from.name = OneOf(kNames);
  indices.name = OneOf(kNames);
  from.has_brackets = indices.has_brackets = true;
  indices.labels.push_back({labels[at], {}});
  Factor factor;
  Call call;
  call.function = BinaryOperator::kTake;
  Texts written = labels, open = labels;
  written[at] = absl::StrCat(indices.name, "[", labels[at], "]");
  call.taken = open[at] = absl::StrCat(written[at], "#", at);
  for (const std::string& label : open) from.labels.push_back({label, {}});
  Write(from.name);
  WriteLabels(written);
  call.labels = labels;
  call.labels.erase(call.labels.begin() + at);
  call.labels.push_back(labels[at]);
  call.arguments.push_back(sum_of(std::move(from), open, false));
  call.arguments.push_back(sum_of(std::move(indices), {labels[at]}, is_ncon_));
  factor.value = std::move(call);
  Write("");
  return factor;
}

Factor Maker::MakeFactor(const Texts& labels, int depth) {
  // A group takes each label once; what it sums is its own.
  const bool is_distinct =
      std::set<std::string>(labels.begin(), labels.end()).size() ==
      labels.size();
  if (is_distinct && depth < 4 && Often(0.25)) return MakeGroup(labels, depth);
  if (is_distinct && depth < 3 && Often(0.15)) return MakeCall(labels, depth);
  if (is_distinct && !labels.empty() && Often(0.1)) return MakeTaken(labels);
  Factor factor;
  const int conjugates = Often(0.2) ? 1 + Below(3) : 0;
  factor.is_conjugated = conjugates % 2 == 1;
  for (int i = 0; i < conjugates; ++i) {
    Write("conj");
    WriteOpen("(");
  }
  if (labels.empty() && Often(0.5)) {
    const auto& [text, number] = OneOf(kNumbers);
    Write(text);
    factor.value = number;
  } else {
    factor.value = MakeTensor(labels, true);
  }
  const auto* const tensor = std::get_if<TensorReference>(&factor.value);
  for (int i = 0; i < conjugates; ++i) text_ += ")";
  // Behind a name, primes are part of it.
  if (conjugates > 0 || (tensor != nullptr && tensor->has_brackets)) {
    for (; Often(0.1); factor.is_conjugated = !factor.is_conjugated) {
      text_ += "'";
    }
  }
  Write("");
  return factor;
}

Factor Maker::MakeScalar(int depth, bool& is_negated) {
  if (MakeSigns() % 2 == 1) is_negated = !is_negated;
  return MakeFactor({}, depth);
}

std::vector<Factor> Maker::MakeLeftDivisors(int depth, bool& is_negated) {
  std::vector<Factor> divisors;
  for (int parts = Often(0.1) ? 1 + Below(2) : 0; parts > 0; --parts) {
    std::vector<Factor> part;
    part.push_back(MakeScalar(depth, is_negated));
    if (Often(0.5)) {
      WriteOpen("/");
      part.push_back(MakeScalar(depth, is_negated));
      part.back().is_divisor = true;
    }
    WriteOpen("\\");
    divisors.insert(divisors.begin(), std::make_move_iterator(part.begin()),
                    std::make_move_iterator(part.end()));
    for (Factor& divisor : divisors) divisor.is_divisor = !divisor.is_divisor;
  }
  return divisors;
}

Term Maker::MakeTerm(const Texts& open, int depth) {
  Term term;
  Texts bag = open;
  for (int pairs = Below(3); pairs > 0; --pairs) {
    const std::string label = NewLabel(false);
    bag.insert(bag.end(), {label, label});
  }
  std::shuffle(bag.begin(), bag.end(), rng_);
  std::vector<Factor> divisors = MakeLeftDivisors(depth, term.is_negated);
  std::vector<Texts> labels(1 + Below(3));  // (factor)
  for (const std::string& label : bag) {
    labels[Below(static_cast<int>(labels.size()))].push_back(label);
  }
  for (const Texts& of_factor : labels) {
    if (!term.factors.empty()) WriteOpen("*");
    if (MakeSigns() % 2 == 1) term.is_negated = !term.is_negated;
    term.factors.push_back(MakeFactor(of_factor, depth));
    if (Often(0.1)) {
      WriteOpen("/");
      term.factors.push_back(MakeScalar(depth, term.is_negated));
      term.factors.back().is_divisor = true;
    }
  }
  term.factors.insert(term.factors.end(),
                      std::make_move_iterator(divisors.begin()),
                      std::make_move_iterator(divisors.end()));
  term.has_labels = !bag.empty();
  term.is_ncon = is_ncon_ && !bag.empty();
  return term;
}

Sum Maker::MakeSum(const Texts& open, int depth) {
  Sum sum;
  const int term_count = Often(0.6) ? 1 : 2 + Below(2);
  for (int i = 0; i < term_count; ++i) {
    bool is_negated = false;
    if (i > 0) {
      is_negated = Often(0.5);
      WriteOpen(is_negated ? "-" : "+");
    }
    Texts of_term = open;
    // At the top, a label of the output may be there twice.
    if (depth == 0 && !open.empty() && Often(0.2)) of_term.push_back(open[0]);
    Term term = MakeTerm(of_term, depth);
    if (is_negated) term.is_negated = !term.is_negated;
    sum.terms.push_back(std::move(term));
  }
  AppendInOrder(sum, open, sum.labels);
  return sum;
}

Statement Maker::MakeStatement() {
  const std::vector<std::pair<std::string, Assignment>> assignments = {
      {"=", Assignment::kStore},
      {":=", Assignment::kCreate},
      {"≔", Assignment::kCreate},
      {"+=", Assignment::kAdd},
      {"-=", Assignment::kSubtract}};
  is_ncon_ = Often(0.3);
  label_count_ = 0;
  Texts open;
  for (int i = Below(4); i > 0; --i) open.push_back(NewLabel(true));
  Statement statement;
  statement.output = MakeTensor(open, false);
  Write("");
  const auto& [symbol, assignment] = OneOf(assignments);
  statement.assignment = assignment;
  WriteOpen(symbol);
  std::shuffle(open.begin(), open.end(), rng_);
  statement.value = MakeSum(open, 0);
  return statement;
}

RandomProgram Maker::Make() {
  RandomProgram program;
  for (int i = 1 + Below(3); i > 0; --i) {
    program.syntax.statements.push_back(MakeStatement());
    text_ += Often(0.3) ? ";" : OneOf(kBreaks);
  }
  program.text = std::move(text_);
  return program;
}

}  // namespace

RandomProgram MakeRandomProgram(std::mt19937& rng) { return Maker(rng).Make(); }

}  // namespace tensord::core::test
