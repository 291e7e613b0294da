// Index notation as it is written: statements of sums of products of tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/base/layout.h"
#include "core/ops/factorization.h"
#include "core/ops/linear_solve.h"
#include "core/ops/operators.h"
#include "core/ops/scalar.h"

namespace tensord::core {

/// A place in a text. Both count from 1; columns count characters, not bytes.
struct TextPosition {
  int32_t line = 1;
  int32_t column = 1;

  bool operator==(const TextPosition&) const = default;
};

/// The name of an index, as it is written: `a`, `å'`, `12`, `-1` or `'f'`.
/// Equal texts in one term are one index.
struct Label {
  std::string text;
  TextPosition position;
};
using Labels = std::vector<Label>;

/// `A[i,j]`, or `A` alone: a scalar by that name, or a tensor without modes.
struct TensorReference {
  std::string name;
  Labels labels;  // (mode)
  bool has_brackets = false;
  bool is_diagonal = false;  // Diagonal(name)[i,j]: of a vector, a matrix
  TextPosition position;
};

struct Sum;

/// What is computed of one element each of one to three tensors.
using ElementFunction = std::variant<UnaryOperator, BinaryOperator>;

/// `sqrt(A[i])`, `A[i]^2`, `A[i] < B[j]`, `where(M[i], A[i], 0)`: of elements
/// that its arguments have at the same values of their labels. Those that an
/// argument lacks repeat it.
///
/// `A[I[i],j]` is TAKE of A and I: at A's label `taken`, which is "I[i]#" and
/// the mode's number and means nothing outside, stands the element of I.
struct Call {
  ElementFunction function;
  std::vector<Sum> arguments;  // of WHERE the condition first
  std::string taken;
  /// Those of the arguments that are not summed in one, without `taken`, in the
  /// order in which they occur first.
  std::vector<std::string> labels;
};

/// One factor of a product.
struct Factor {
  /// A tensor or scalar by name, a number, a group in parentheses, which has
  /// one element, or a function's value.
  std::variant<TensorReference, Scalar, std::vector<Sum>, Call> value;
  bool is_conjugated = false;
  bool is_divisor = false;  // never the first factor
  bool is_scalar = false;   // a group that is written tensorscalar(...)
  /// Sums all its labels, whatever is called the same around it: is_scalar, or
  /// a divisor whose terms have each of their labels twice. One that is no
  /// group sums no labels of the output.
  bool has_own_labels = false;
  TextPosition position;

  const Sum* group() const {
    const auto* const sums = std::get_if<std::vector<Sum>>(&value);
    return sums == nullptr ? nullptr : sums->data();
  }
  const Call* call() const { return std::get_if<Call>(&value); }
  /// The sums that it consists of: a group, a function's arguments, or none.
  std::span<const Sum> parts() const;
  std::span<Sum> parts();
};

/// A product with a sign.
struct Term {
  bool is_negated = false;
  std::vector<Factor> factors;  // (factor), one or more
  /// Its indices are summed in the order of their numbers, smallest first:
  /// every factor's labels are integers, the output's are negative and those
  /// that are summed, here or around the group, positive (NCON). False without
  /// labels.
  bool is_ncon = false;
  /// False for numbers, scalars, and what has labels of its own only: it is the
  /// same at all values of the labels that other terms of its sum have.
  bool has_labels = false;
  TextPosition position;
};

/// One or more terms. `labels` are those that are not summed inside, in the
/// order in which they occur first; each term has all of them, or none. Without
/// labels a statement's output, which is there already, is the same everywhere.
///
/// In a term each label occurs in at most two places, counting what is in its
/// groups and calls but for those that have labels of their own (several terms
/// of a group, and arguments of a call, count as the one of them that has the
/// label most often): once, and then it is in `labels`; or twice, and then it
/// is summed unless the statement's output has it. What occurs twice in a group
/// or a call does not occur around it; but a label of the output counts once in
/// either.
struct Sum {
  std::vector<Term> terms;  // (term)
  std::vector<std::string> labels;
};

inline std::span<const Sum> Factor::parts() const {
  return const_cast<Factor*>(this)->parts();
}

inline std::span<Sum> Factor::parts() {
  if (auto* const sums = std::get_if<std::vector<Sum>>(&value)) return *sums;
  if (auto* const call = std::get_if<Call>(&value)) return call->arguments;
  return {};
}

/// `=`: into a tensor that there is, or when the output has no brackets and
/// nothing has that name, a new one; `:=`: into a new one; `+=`, `-=`.
enum class Assignment { kStore, kCreate, kAdd, kSubtract };

/// `rank=64`, `cutoff=x`, `absorb=left`, `along=j`: a number, a scalar's name,
/// a word or a label.
struct CallOption {
  std::string name;
  std::variant<double, std::string> value;
  TextPosition position;
};

/// What goes along one label.
enum class AlongFunction : uint8_t {
  kCumulativeSum,
  kCumulativeProduct,
  kCumulativeMax,
  kCumulativeMin,
  kArgsort,
};

/// `svd(T[a,b,c]; rank=64)`, `cumsum(T[a,b]; along=b)`: what is computed of
/// whole tensors. Of matrices, which of the labels number rows, and which
/// columns, is said by those of the results.
struct StatementCall {
  std::optional<FactorizationMethod> method;
  std::optional<AlongFunction> along;
  MatrixFunction function = MatrixFunction::kInverse;
  std::vector<Sum> arguments;
  std::vector<CallOption> options;
  TextPosition position;

  /// Linear equations; of one argument the function.
  bool solves() const { return !method && !along; }
};

/// `D[a,b] := ...`. With NCON's `D[:]` the labels are filled in: the negative
/// ones of the first term, -1 first.
struct Statement {
  TensorReference output;
  std::vector<TensorReference> others;  // of a call, results behind the first
  Assignment assignment = Assignment::kStore;
  Sum value;                          // without terms when there is
  std::optional<StatementCall> call;  // which adds to nothing

  /// All that it makes or writes, in the order in which it is written.
  std::vector<const TensorReference*> outputs() const;
  /// What it reads: the value, or the arguments of the call.
  std::span<const Sum> parts() const;
};

inline std::vector<const TensorReference*> Statement::outputs() const {
  std::vector<const TensorReference*> all = {&output};
  for (const TensorReference& other : others) all.push_back(&other);
  return all;
}

inline std::span<const Sum> Statement::parts() const {
  if (call) return call->arguments;
  return {&value, 1};
}

struct ProgramSyntax {
  std::vector<Statement> statements;  // (statement), in order
};

/// How much text is taken.
struct NotationLimits {
  int64_t max_text_bytes = 1 << 20;
  int64_t max_statements = 10'000;
  /// Of a term, with those in its groups, or an argument of a StatementCall; an
  /// Einstein sum's operands.
  int64_t max_factors = 4'096;
  /// Of a tensor; of a group, those in Sum::labels.
  int64_t max_labels = kMaxModes;
  int64_t max_depth = 64;  // of parentheses
};

}  // namespace tensord::core
