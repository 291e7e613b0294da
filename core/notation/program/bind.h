// Notation whose names and labels stand for tensors and indices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/element_type.h"
#include "core/base/layout.h"
#include "core/notation/parse_einsum.h"
#include "core/notation/program/lower.h"
#include "core/notation/program/program.h"
#include "core/notation/syntax.h"
#include "core/ops/factorization.h"
#include "core/ops/linear_solve.h"
#include "core/ops/operand.h"

namespace tensord::core {

/// A tensor, or a part of one, of which is known which mode is which index. An
/// index that several modes have is one mode: their diagonal.
///
/// Invariant  indices are distinct; those of extent 1 are left out.
struct IndexedTensor {
  int32_t tensor = -1;       // of Program::tensors
  int64_t offset = 0;        // elements
  Modes indices;             // (mode)
  Layout layout;             // (mode)
  ModeVector slice_strides;  // (slice), elements; empty outside sliced blocks
  bool is_conjugated = false;
};

struct BoundSum;
struct BoundCall;

/// A factor of a product: a tensor, or what is computed first, a group or a
/// function's value.
struct BoundFactor {
  IndexedTensor tensor;  // when there is neither of
  std::unique_ptr<BoundSum> group;
  std::unique_ptr<BoundCall> call;
  bool is_conjugated = false;  // what is computed first; the tensor has its own
  bool is_divisor = false;
  ElementType element_type = ElementType::kFloat32;
  std::string text;  // as written; what is computed first in short

  bool is_computed() const { return group != nullptr || call != nullptr; }
  const Modes& indices() const;
  bool Reads(int32_t tensor) const;
};

/// A product with a factor, summed over the indices that its sum lacks.
///
/// Invariant  `same` has indices of the sum only, and no factor has the second
///            of a pair.
struct BoundTerm {
  int32_t number = 0;  // of the program's terms; the same for all scalars
  Scalar coefficient = kOne;
  bool is_quotient = false;          // by a number
  std::vector<BoundFactor> factors;  // tensors and groups
  /// Indices to be summed in this order; empty: as is cheapest.
  std::vector<Mode> order;
  /// Pairs of indices that are equal where the term is not zero.
  std::vector<std::pair<Mode, Mode>> same;
  ElementType element_type = ElementType::kFloat32;
};

struct BoundSum {
  std::vector<BoundTerm> terms;
  Modes indices;  // that are not summed, without those of extent 1
  ElementType element_type = ElementType::kFloat32;

  /// True when a term, or a group in one, reads `tensor`.
  bool Reads(int32_t tensor) const;
};

/// A function's value.
struct BoundCall {
  ElementFunction function;
  /// Its inputs have this type, but for a condition, which is of bool.
  ElementType argument_type = ElementType::kFloat32;
  ElementType result_type = ElementType::kFloat32;
  /// Of TAKE, the index that the first argument has and the call lacks. The
  /// argument lacks it, too, where its extent is 1.
  Mode taken = -1;
  StepPlace place;  // of TAKE
  /// With indices of the call, and `taken`. An argument that is a number is a
  /// sum of terms without factors.
  std::vector<BoundSum> arguments;
  Modes indices;
};

/// A function of whole tensors, with indices of its statement.
struct BoundStatementCall {
  std::vector<BoundSum> arguments;
  std::vector<std::vector<Mode>> inputs;   // (argument)(mode), also of extent 1
  std::vector<std::vector<Mode>> outputs;  // (result)(mode), likewise
  std::optional<int64_t> rank;
  Truncation truncation;
  std::optional<Sampling> sampling;
  MatrixStructure structure = MatrixStructure::kGeneral;
  bool has_unit_diagonal = false;
  Mode along = -1;  // of functions along an index
  bool descends = false;
};

/// The number that a sum of numbers is; nothing when there is anything else.
std::optional<Scalar> NumberOf(const BoundSum& sum);

/// What names stand for at a statement, and the indices of all statements.
class Bindings {
 public:
  explicit Bindings(Program& program) : program_(program) {}

  /// What a name stands for from now on.
  void SetScalar(absl::string_view name, Scalar value);
  void SetTensor(absl::string_view name, int32_t tensor);
  bool Has(absl::string_view name) const { return names_.contains(name); }

  /// The tensor that `reference` names.
  /// Errors  INVALID_ARGUMENT, reasons NAME_UNKNOWN, NAME_IS_SCALAR,
  ///         MODE_COUNT_MISMATCH: also of what is no vector in Diagonal().
  absl::StatusOr<int32_t> FindTensor(const TensorReference& reference) const;

  /// A statement's right side, and its output's indices by mode, also those of
  /// extent 1.
  struct Bound {
    BoundSum sum;
    std::vector<Mode> output;  // (mode)
  };
  /// Errors  those of FindTensor(); MODE_EXTENT_MISMATCH.
  absl::StatusOr<Bound> Bind(const Statement& statement);
  /// A statement that calls a function of whole tensors.
  /// Errors  those of Bind(); of options SYNTAX_ERROR and LABEL_UNMATCHED, and
  ///         what Validate() says of truncations.
  absl::StatusOr<BoundStatementCall> BindCall(const Statement& statement);
  /// A product of the first operands. An extent of 1 goes with any other.
  absl::StatusOr<Bound> Bind(const EinsumSyntax& einsum,
                             absl::Span<const NamedOperand> operands);

  /// `tensor`, its mode m being index `indices[m]`.
  IndexedTensor Indexed(int32_t tensor, absl::Span<const Mode> indices) const;
  /// OK when the indices of an output's modes have the extents of `tensor`.
  /// Errors  INVALID_ARGUMENT, reason MODE_EXTENT_MISMATCH.
  absl::Status CheckOutput(const TensorReference& output, int32_t tensor,
                           absl::Span<const Mode> indices);

  /// -1: nothing has said it yet.
  int64_t extent(Mode index) const { return extents_[index]; }
  /// Says the extent of an index of which nothing else has.
  void SetExtent(Mode index, int64_t extent) { extents_[index] = extent; }
  Mode index_count() const { return static_cast<Mode>(extents_.size()); }
  const std::string& name(Mode index) const {
    return program_.index_names[index];
  }

 private:
  /// Labels that stand for indices.
  using Scope = absl::flat_hash_map<std::string, Mode>;

  Mode IndexOf(const Label& label, Scope& scope);
  /// The number that an option of a call is: one, or a real scalar's.
  absl::StatusOr<double> LimitOf(const CallOption& option) const;
  absl::Status TakeOption(const StatementCall& call, const CallOption& option,
                          BoundStatementCall& bound) const;
  /// The index along which a call goes, of those in `scope`.
  absl::StatusOr<Mode> AlongOf(const StatementCall& call,
                               const Scope& scope) const;
  /// `place` is where in the text, in front of messages.
  absl::Status MeetExtent(Mode index, int64_t extent, const std::string& where,
                          absl::string_view place = "");
  absl::StatusOr<BoundSum> BindSum(const Sum& sum, Scope& scope);
  absl::StatusOr<BoundTerm> BindTerm(const Term& term,
                                     const std::vector<std::string>& labels,
                                     Scope& scope);
  /// Multiplies `term` by `factor`, or divides it.
  absl::Status AddFactor(const Factor& factor, Scope& scope, BoundTerm& term);
  /// The number that `factor` is, if it is one.
  std::optional<Scalar> ScalarOf(const Factor& factor) const;
  absl::Status AddTensor(const Factor& factor, Scope& scope, BoundTerm& term);
  absl::Status AddGroup(const Factor& factor, Scope& scope, BoundTerm& term);
  absl::Status AddCall(const Factor& factor, Scope& scope, BoundTerm& term);
  /// Makes a quotient of a term that divides by tensors with indices and sums
  /// none of these: it is then rounded once.
  void Divide(const Modes& open, BoundTerm& term);
  ElementType TypeOf(const BoundFactor& factor) const;
  absl::StatusOr<BoundFactor> BindTensor(const TensorReference& reference,
                                         bool is_conjugated, Scope& scope);
  Modes WithoutOnes(absl::Span<const Mode> indices) const;
  /// The labels that a term in NCON's form sums, as numbers, with their
  /// indices.
  std::vector<std::pair<int64_t, Mode>> SummedNumbers(
      const std::vector<std::string>& labels, const Scope& scope) const;

  Program& program_;
  absl::flat_hash_map<std::string, std::pair<Scalar, int32_t>>
      names_;                       // tensor, or -1 and a scalar
  std::vector<int64_t> extents_;    // (index)
  std::vector<std::string> first_;  // (index): where the extent is from
  int32_t term_count_ = 0;          // that are bound
};

/// `x` times `y`.
Scalar Times(const Scalar& x, const Scalar& y);

/// Multiplies `term` by the number that `from` is, or divides it.
/// Errors  INVALID_ARGUMENT, reason DIVISION_BY_ZERO.
absl::Status Scale(Scalar number, const Factor& from, BoundTerm& term);

/// The type of elements of `type` together with a number: theirs, unless that
/// cannot have the number's value.
ElementType WithNumber(ElementType type, const Scalar& number);

/// The type of 1/x: integers have none.
ElementType ReciprocalType(ElementType type);

/// Puts `by` in the place of an index; with both there is their diagonal.
void Replace(Mode index, Mode by, IndexedTensor& tensor);
void Replace(Mode index, Mode by, BoundSum& sum);
void Replace(Mode index, Mode by, BoundCall& call);

}  // namespace tensord::core
