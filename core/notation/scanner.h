// The words of statements: names, numbers, quoted characters and symbols.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/notation/syntax.h"
#include "core/ops/scalar.h"

namespace tensord::core {

struct Token {
  enum class Kind {
    kName,
    kNumber,
    kQuoted,  // one character with its quotes
    kSymbol,  // operator, bracket, ',' or ':', ' behind a bracket
    kEndOfStatement,
    kEndOfText,
  };

  Kind kind = Kind::kEndOfText;
  absl::string_view text;
  TextPosition position;
  Scalar number;

  bool Is(absl::string_view symbol) const {
    return kind == Kind::kSymbol && text == symbol;
  }
  bool IsEnd() const {
    return kind == Kind::kEndOfStatement || kind == Kind::kEndOfText;
  }
};

/// What stands there, for messages.
std::string Shown(const Token& token);

/// Cuts a text into tokens. Blanks and comments fall away, and so do ends of
/// lines behind operators and commas and in brackets.
///
/// Lifetime  the text must outlive the scanner and its tokens.
class Scanner {
 public:
  explicit Scanner(absl::string_view text) : text_(text) {}

  /// The next token; kEndOfText for ever at the end.
  ///
  /// Errors  INVALID_ARGUMENT, SYNTAX_ERROR: no token begins or ends here.
  absl::StatusOr<Token> Next();

 private:
  bool IsAtEnd() const { return offset_ == text_.size(); }
  char32_t Current() const;
  void Skip();  // one character
  void SkipDigits();
  /// Goes to the next token or end of a statement.
  void SkipBlanks();
  bool ContinuesLine() const { return bracket_count_ > 0 || is_open_; }

  void ReadName();
  absl::Status ReadNumber(Token& token);
  absl::Status ReadQuoted(TextPosition position);
  void ReadSymbol();

  absl::string_view text_;
  size_t offset_ = 0;
  TextPosition position_;
  int bracket_count_ = 0;
  bool is_open_ = false;        // behind an operator or a comma
  bool may_be_primed_ = false;  // right behind a closing bracket or its primes
};

}  // namespace tensord::core
