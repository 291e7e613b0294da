#include "core/notation/scanner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"
#include "core/notation/characters.h"
#include "core/notation/text_error.h"

namespace tensord::core {
namespace {

/// Longer ones first.
constexpr absl::string_view kSymbols[] = {
    ":=", "≔", "+=", "-=", "==", "!=", "<=", ">=", "**", "=", "<", ">",
    "^",  "+", "-",  "*",  "/",  "\\", ",",  ":",  "(",  ")", "[", "]"};

bool IsDigit(char32_t c) { return c >= '0' && c <= '9'; }

bool IsNameStart(char32_t c) { return c == '_' || IsLetter(c); }

bool IsNamePart(char32_t c) {
  return IsNameStart(c) || IsDigit(c) || IsMark(c);
}

}  // namespace

std::string Shown(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kEndOfText: return "the end of the text";
    case Token::Kind::kEndOfStatement:
      return token.text == ";" ? "';'" : "the end of the line";
    default: return token.Is("'") ? "a prime" : Quoted(token.text);
  }
}

absl::StatusOr<Token> Scanner::Next() {
  const size_t last_end = offset_;
  SkipBlanks();
  const bool is_prime =
      may_be_primed_ && offset_ == last_end && Current() == '\'';
  may_be_primed_ = is_prime;
  Token token;
  token.position = position_;
  if (IsAtEnd()) return token;
  const size_t start = offset_;
  const char32_t first = Current();
  const auto follows = [&](size_t count) {
    return start + count < text_.size() ? text_[start + count] : '\0';
  };
  if (first == ';' || first == '\n' || first == '\r') {
    token.kind = Token::Kind::kEndOfStatement;
    is_open_ = false;
    Skip();
  } else if (IsNameStart(first)) {
    token.kind = Token::Kind::kName;
    ReadName();
  } else if (IsDigit(first) || (first == '.' && IsDigit(follows(1)))) {
    token.kind = Token::Kind::kNumber;
    TENSORD_RETURN_IF_ERROR(ReadNumber(token));
  } else if (is_prime) {
    token.kind = Token::Kind::kSymbol;
    Skip();
  } else if (first == '\'') {
    token.kind = Token::Kind::kQuoted;
    TENSORD_RETURN_IF_ERROR(ReadQuoted(token.position));
  } else {
    token.kind = Token::Kind::kSymbol;
    ReadSymbol();
    if (offset_ == start) {
      return ErrorAt(position_, "SYNTAX_ERROR", "got ", Shown(text_, offset_),
                     ", wanted a name, a number, an operator or a bracket");
    }
  }
  token.text = text_.substr(start, offset_ - start);
  if (!token.IsEnd()) {
    constexpr absl::string_view kNoOperators[] = {":", "(", ")", "[", "]", "'"};
    is_open_ = token.kind == Token::Kind::kSymbol &&
               !std::ranges::count(kNoOperators, token.text);
  }
  return token;
}

char32_t Scanner::Current() const {
  return IsAtEnd() ? U'\0' : CharacterAt(text_, offset_).value;
}

void Scanner::Skip() {
  const Character c = CharacterAt(text_, offset_);
  // A line that ends with both ends once.
  const bool is_half =
      c.value == '\r' && absl::StartsWith(text_.substr(offset_), "\r\n");
  offset_ += c.byte_count + (is_half ? 1 : 0);
  if (c.value == '\n' || c.value == '\r') {
    ++position_.line;
    position_.column = 1;
  } else {
    ++position_.column;
  }
}

void Scanner::SkipBlanks() {
  while (!IsAtEnd()) {
    const char32_t c = Current();
    if (c == '#') {
      while (!IsAtEnd() && Current() != '\n' && Current() != '\r') Skip();
    } else if (IsBlank(c) || ((c == '\n' || c == '\r') && ContinuesLine())) {
      Skip();
    } else {
      return;
    }
  }
}

void Scanner::ReadName() {
  while (!IsAtEnd() && IsNamePart(Current())) Skip();
  while (!IsAtEnd() && IsPrime(Current())) Skip();
}

void Scanner::SkipDigits() {
  while (!IsAtEnd() && IsDigit(Current())) Skip();
}

absl::Status Scanner::ReadNumber(Token& token) {
  const size_t start = offset_;
  SkipDigits();
  if (Current() == '.') {
    Skip();
    SkipDigits();
  }
  if (Current() == 'e' || Current() == 'E') {
    absl::string_view exponent = text_.substr(offset_ + 1);
    const size_t sign_count =
        exponent.empty() || (exponent[0] != '+' && exponent[0] != '-') ? 0 : 1;
    if (exponent.size() > sign_count && IsDigit(exponent[sign_count])) {
      for (size_t i = 0; i < 1 + sign_count; ++i) Skip();
      SkipDigits();
    }
  }
  const absl::string_view digits = text_.substr(start, offset_ - start);
  double value = 0;
  if (!absl::SimpleAtod(digits, &value) || !std::isfinite(value)) {
    return ErrorAt(token.position, "SYNTAX_ERROR", "number ", Quoted(digits),
                   " is beyond the range of float64");
  }
  const absl::string_view rest = text_.substr(offset_);
  const size_t unit = absl::StartsWith(rest, "im")  ? 2
                      : absl::StartsWith(rest, "j") ? 1
                                                    : 0;
  for (size_t i = 0; i < unit; ++i) Skip();
  token.number = unit == 0 ? Scalar{value, 0} : Scalar{0, value};
  if (IsAtEnd()) return absl::OkStatus();
  const char32_t next = Current();
  if (IsNamePart(next) || IsPrime(next) || next == '.') {
    return ErrorAt(position_, "SYNTAX_ERROR", "got ", Shown(text_, offset_),
                   " behind number ",
                   Quoted(text_.substr(start, offset_ - start)),
                   ", wanted an operator, a comma or a bracket");
  }
  return absl::OkStatus();
}

absl::Status Scanner::ReadQuoted(TextPosition position) {
  Skip();
  const char32_t quoted = Current();
  const bool is_character = !IsAtEnd() && quoted != Character::kNotUtf8 &&
                            quoted != '\'' && !IsUnprintable(quoted);
  if (is_character) Skip();
  if (!is_character || IsAtEnd() || Current() != '\'') {
    return ErrorAt(
        position, "SYNTAX_ERROR", "got ",
        IsAtEnd() ? "the end of the text" : Shown(text_, offset_),
        is_character ? " behind a quote and a character" : " behind a quote",
        ", wanted one character between quotes, such as 'f'");
  }
  Skip();
  return absl::OkStatus();
}

void Scanner::ReadSymbol() {
  const absl::string_view rest = text_.substr(offset_);
  for (const absl::string_view symbol : kSymbols) {
    if (!absl::StartsWith(rest, symbol)) continue;
    const size_t end = offset_ + symbol.size();
    while (offset_ < end) Skip();
    if (symbol == "(" || symbol == "[") ++bracket_count_;
    if (symbol == ")" || symbol == "]") {
      bracket_count_ = std::max(bracket_count_ - 1, 0);
      may_be_primed_ = true;
    }
    return;
  }
}

}  // namespace tensord::core
