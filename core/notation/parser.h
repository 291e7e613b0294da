// Statements, read by recursive descent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/notation/functions.h"
#include "core/notation/scanner.h"
#include "core/notation/syntax.h"
#include "core/notation/text_error.h"

namespace tensord::core {

/// A function a rule; it descends where parentheses open.
///
/// Lifetime  text and limits must outlive it.
class Parser {
 public:
  Parser(absl::string_view text, const NotationLimits& limits)
      : limits_(limits), scanner_(text) {}

  absl::StatusOr<ProgramSyntax> ReadProgram();

 private:
  absl::StatusOr<Statement> ReadStatement();
  absl::StatusOr<Assignment> ReadAssignment();
  /// Results behind the first, if there are any.
  absl::Status ReadOtherOutputs(Statement& statement);
  /// The function of whole tensors that is called next; null: another value
  /// comes.
  absl::StatusOr<const StatementFunction*> PeekStatementFunction() const;
  absl::Status ReadStatementCall(const StatementFunction& function,
                                 Statement& statement);
  absl::Status ReadCallOption(StatementCall& call);
  /// A sum, or a comparison of two.
  absl::StatusOr<Sum> ReadExpression();
  absl::StatusOr<Sum> ReadSum();
  absl::Status ReadTerm(Term& term);
  absl::StatusOr<Factor> ReadFactor();
  /// A factor before what follows it: primes and an exponent.
  absl::StatusOr<Factor> ReadBase();
  /// Raises a factor to the power that comes.
  absl::Status ReadExponent(Factor& factor);
  /// What begins with a name: a tensor, or a function's value.
  absl::StatusOr<Factor> ReadNamed();
  /// `norm(x)` is `(2*sqrt(tensorscalar(real(0.25*conj((x))*(x)))))`.
  absl::Status ReadNorm(Factor& factor);
  absl::Status ReadDiagonal(TensorReference& tensor);
  absl::Status ReadCall(const TensorReference& name, Factor& factor);
  /// Goes a level deeper, to what comes behind a '(' or an exponent's sign.
  absl::Status Descend();
  absl::Status ReadGroup(Factor& factor);
  /// What is assigned to. `colon` is where its labels are `[:]`.
  absl::StatusOr<TensorReference> ReadOutput(
      std::optional<TextPosition>& colon);
  /// Labels, if there are brackets. Null forbids `[:]`.
  absl::Status ReadBrackets(TensorReference& tensor,
                            std::optional<TextPosition>* colon);
  absl::Status ReadLabels(TensorReference& tensor);
  /// Labels between parentheses.
  absl::Status ReadTuple(TensorReference& tensor);
  absl::Status AddLabel(TensorReference& tensor);
  /// Reads the labels of a tensor that stands where a label would, that of the
  /// mode of that number, and gives it a label.
  absl::Status ReadIndices(size_t mode, Label& label);
  /// What `tensor` has at the indices that were read since there were `before`.
  Factor TakeAtIndices(TensorReference tensor, size_t before);
  /// OK when there were none: where `where` completes `wanted labels `.
  absl::Status RefuseIndices(size_t before, absl::string_view where) const;
  absl::StatusOr<Label> ReadLabel();
  /// Takes what is between two labels, which is as between those before.
  absl::Status TakeSeparator(std::optional<bool>& is_comma);

  absl::Status Advance();
  absl::StatusOr<bool> TakeIf(absl::string_view symbol);
  absl::Status Take(absl::string_view symbol, absl::string_view wanted);
  /// Signs that change a term's, one after another.
  absl::Status TakeSigns(Term& term);
  /// True when something is between the token and the one before it.
  bool IsApart() const { return token_.text.data() != last_end_; }
  absl::Status CountFactor();

  template <typename... Wanted>
  absl::Status Unexpected(const Wanted&... wanted) const {
    return ErrorAt(token_.position, "SYNTAX_ERROR", "got ", Shown(token_),
                   ", wanted ", wanted...);
  }

  const NotationLimits& limits_;
  Scanner scanner_;
  Token token_;                     // to be read next
  const char* last_end_ = nullptr;  // of the token before it
  int64_t depth_ = 0;
  int64_t factor_count_ = 0;  // of the outermost term, or an argument
  /// Tensors that stand where labels would, of which nothing is taken yet, by
  /// those labels.
  std::vector<std::pair<Label, Factor>> indices_;
};

}  // namespace tensord::core
