// The costs of indices as text, see ParseCosts().
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/notation/characters.h"
#include "core/notation/path/symbolic.h"

namespace tensord::core {
namespace {

constexpr absl::string_view kCostMalformed = "COST_MALFORMED";
constexpr int kMaxDegree = 64;  // of a cost

/// Reads from left to right and keeps the first error.
class CostReader {
 public:
  explicit CostReader(absl::string_view text) : text_(text) { SkipBlanks(); }

  bool IsAtEnd() const { return offset_ == text_.size(); }
  bool has_error() const { return !error_.ok(); }
  const absl::Status& error() const { return error_; }
  const std::string& variable() const { return variable_; }
  int column() const { return column_; }

  /// Takes `symbol` when it comes next.
  bool Take(absl::string_view symbol) {
    if (has_error() || !absl::StartsWith(text_.substr(offset_), symbol)) {
      return false;
    }
    Advance(symbol.size());
    SkipBlanks();
    return true;
  }

  void Expect(absl::string_view symbol) {
    if (!Take(symbol)) Fail(absl::StrCat("'", symbol, "'"));
  }

  void Fail(absl::string_view wanted) {
    FailAt(column_, absl::StrCat("got ", Next(), ", wanted ", wanted));
  }

  void FailAt(int column, absl::string_view what) {
    if (has_error()) return;
    error_ =
        InvalidArgument(kCostMalformed, "costs, column ", column, ": ", what);
  }

  /// A label: letters, digits, marks and primes, or a number with its sign.
  std::string Label() {
    const size_t begin = offset_;
    if (!IsAtEnd() && text_[offset_] == '-') Step();
    SkipWord();
    std::string label(text_.substr(begin, offset_ - begin));
    if (label.empty() || label == "-") Fail("a label");
    SkipBlanks();
    return label;
  }

  /// term + term ...
  Polynomial Sum() {
    Polynomial sum = Product();
    while (Take("+")) sum += Product();
    return sum;
  }

 private:
  std::string Next() const {
    return IsAtEnd() ? "the end" : Shown(text_, offset_);
  }
  Character Current() const { return CharacterAt(text_, offset_); }
  void Step() {
    offset_ += Current().byte_count;
    ++column_;
  }
  void Advance(size_t byte_count) {
    for (const size_t end = offset_ + byte_count; offset_ < end;) Step();
  }
  void SkipBlanks() {
    while (!IsAtEnd() && (IsBlank(Current().value) || text_[offset_] == '\n')) {
      Step();
    }
  }
  void SkipWord() {
    while (!IsAtEnd()) {
      const char32_t c = Current().value;
      const bool is_digit = c >= '0' && c <= '9';
      if (!is_digit && c != '_' && !IsLetter(c) && !IsMark(c) && !IsPrime(c)) {
        break;
      }
      Step();
    }
  }

  /// factor * factor ...; a number may stand right before a name.
  Polynomial Product() {
    Polynomial product = Factor();
    while (!has_error() && (Take("*") || (!IsAtEnd() && IsNameNext()))) {
      const int column = column_;
      product = product * Factor();
      if (product.degree() > kMaxDegree) {
        FailAt(column, absl::StrCat("a cost of degree ", product.degree(),
                                    ", wanted at most ", kMaxDegree));
      }
    }
    return product;
  }

  bool IsNameNext() const {
    const char32_t c = Current().value;
    return c == '_' || IsLetter(c);
  }

  Polynomial Factor() {
    if (has_error()) return Polynomial::Constant(1);
    if (IsAtEnd()) {
      Fail("a number or a variable");
      return Polynomial::Constant(1);
    }
    Polynomial base;
    if (IsNameNext()) {
      const int column = column_;
      const size_t begin = offset_;
      SkipWord();
      const std::string name(text_.substr(begin, offset_ - begin));
      SkipBlanks();
      if (variable_.empty()) variable_ = name;
      if (variable_ != name) {
        FailAt(column,
               absl::StrCat("got the variable ", Quoted(name), ", wanted ",
                            Quoted(variable_), ": costs have one variable"));
      }
      base = Polynomial::Power(1, 1);
    } else {
      base = Polynomial::Constant(Number("a number or a variable"));
    }
    if (Take("^")) {
      const int column = column_;
      const double exponent = Number("an exponent");
      if (!(exponent <= kMaxDegree)) {
        FailAt(column,
               absl::StrCat("wanted an exponent of at most ", kMaxDegree));
        return base;
      }
      Polynomial power = Polynomial::Constant(1);
      for (int i = 0; i < exponent; ++i) power = power * base;
      return power;
    }
    return base;
  }

  /// A whole number of 1 or more; an exponent may be 0.
  double Number(absl::string_view wanted) {
    const int column = column_;
    const size_t begin = offset_;
    while (!IsAtEnd() && text_[offset_] >= '0' && text_[offset_] <= '9') Step();
    int64_t number = 1;
    if (offset_ == begin) {
      Fail(wanted);
    } else if (!absl::SimpleAtoi(text_.substr(begin, offset_ - begin),
                                 &number) ||
               number >= int64_t{1} << 53) {
      FailAt(column, "a number of more than 53 bits");
    } else if (number == 0 && wanted != "an exponent") {
      FailAt(column, "got 0, wanted a cost of 1 or more");
    }
    SkipBlanks();
    return static_cast<double>(number);
  }

  absl::string_view text_;
  size_t offset_ = 0;
  int column_ = 1;
  std::string variable_;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<SymbolicExtents> ParseCosts(
    absl::string_view text, absl::Span<const std::string> labels) {
  const Polynomial one = Polynomial::Constant(1);
  const Polynomial chi = Polynomial::Power(1, 1);
  SymbolicExtents result;
  CostReader reader(text);
  if (reader.IsAtEnd()) {
    result.extents.assign(labels.size(), chi);
    return result;
  }
  const bool is_negated = reader.Take("!");
  result.extents.assign(labels.size(), is_negated ? chi : one);
  bool is_enclosed = reader.Take("(");
  if (is_negated && !is_enclosed) reader.Fail("'('");
  const auto is_at_end = [&] {
    return is_enclosed ? reader.Take(")") : reader.IsAtEnd();
  };
  std::set<std::string> seen;
  std::vector<CostLabel> group;  // labels that have one cost
  const auto read_label = [&] {
    const int column = reader.column();
    const std::string label = reader.Label();
    if (!reader.has_error() && !seen.insert(label).second) {
      reader.FailAt(
          column, absl::StrCat("label ", Quoted(label), " has a cost already"));
    }
    group.push_back({label, column});
    result.named.push_back(group.back());
  };
  const auto set_cost = [&](const Polynomial& cost) {
    for (const CostLabel& label : group) {
      for (size_t i = 0; i < labels.size(); ++i) {
        if (labels[i] == label.text) result.extents[i] = cost;
      }
    }
  };
  const auto takes_cost = [&] { return reader.Take("=>") || reader.Take("="); };
  bool has_costs = false;
  bool is_first = true;
  const auto read_items = [&] {
    for (; !reader.has_error() && !is_at_end(); is_first = false) {
      if (!is_first) reader.Expect(",");
      group.clear();
      const bool is_group = !is_negated && reader.Take("(");
      do {
        read_label();
      } while (is_group && !reader.has_error() && reader.Take(","));
      if (is_group) reader.Expect(")");
      Polynomial cost = is_negated ? one : chi;
      if (!reader.has_error() && !is_negated) {
        const int cost_column = reader.column();
        const bool has_cost = takes_cost();
        if (is_group && !has_cost) {
          reader.Fail("'=>' and a cost behind several labels");
        } else if (!is_first && has_cost != has_costs) {
          reader.FailAt(cost_column, has_costs ? "wanted '=>' and a cost"
                                     : is_enclosed
                                         ? "wanted ',' or ')', as before"
                                         : "wanted ',', as before");
        }
        has_costs = has_cost;
        if (has_cost) cost = reader.Sum();
      }
      set_cost(cost);
    }
  };
  read_items();
  // What stood in parentheses, `(a,b)=>χ, c=>2`, was the first group.
  if (is_enclosed && !is_negated && !has_costs && !result.named.empty() &&
      !reader.has_error() && takes_cost()) {
    group = result.named;
    set_cost(reader.Sum());
    is_enclosed = false;
    has_costs = true;
    read_items();
  }
  if (!reader.has_error() && !reader.IsAtEnd()) {
    reader.Fail("the end");
  }
  if (reader.has_error()) return reader.error();
  if (!reader.variable().empty()) result.variable = reader.variable();
  return result;
}

}  // namespace tensord::core
