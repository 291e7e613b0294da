// Notation -> program: which operations compute it, in which order and where.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/notation/parse_einsum.h"
#include "core/notation/path/find_path.h"
#include "core/notation/program/program.h"
#include "core/notation/syntax.h"

namespace tensord::core {

/// What a name stands for: a scalar, or a tensor like this.
struct NamedOperand {
  std::string name;
  std::optional<Scalar> scalar;  // the other fields do not count then
  ElementType element_type = ElementType::kFloat32;
  Layout layout;
  int64_t alignment_bytes = 256;  // of the first element's address
  /// Of a tensor: it stays as it is from one execution to the next.
  bool is_constant = false;
};

/// A tensor that a program makes and the client keeps.
struct NamedOutput {
  std::string name;
  std::optional<ElementType> element_type;  // absent: from the inputs
  Order order = Order::kFirstModeFastest;
};

struct LoweringOptions {
  /// Its max_peak is set from the limit. A time budget that is given is one for
  /// all products together.
  PathOptions path;
  /// Positions as TreeFromPositions() takes them, for a program of one product.
  std::vector<std::vector<int64_t>> given_path;
  /// Where the search of a program of one product goes on. Empty: nowhere.
  NamedStart start;
  /// What labels cost, as ParseCosts() reads it: trees are the best by that, as
  /// FindSymbolicPath() has them, and not by extents.
  std::optional<std::string> costs;
  /// A program of the same syntax on operands of the same layouts, whose paths
  /// are taken over: scalars may differ. The search's options do not count
  /// then.
  const Program* like = nullptr;
  /// When searches end.
  absl::Time search_ends = absl::InfiniteFuture();
  /// Most bytes of temporaries at a time, without those that are kept.
  std::optional<int64_t> memory_limit_bytes;
  /// Temporaries that have so many bytes together share none, see
  /// AssignArena().
  int64_t ample_bytes = 0;
  /// Of tensors that are made and that NamedOutput does not speak of.
  Order order = Order::kFirstModeFastest;
  /// Of contractions; absent: from the element types.
  std::optional<ComputeType> compute_type;
};

/// The program of `syntax`.
///
/// Names that `:=` makes and `outputs` has are kept; without `outputs`, those
/// that no later statement reads. So does `s = ...` without brackets, unless
/// `s` is an operand or made before. Element types go together as in NumPy; of
/// a product's contraction order the search decides, within parentheses and
/// beyond. Functions of integers that have fractions are of float64, and so are
/// quotients of integers; numbers have the type of what is with them, if that
/// has their value. Functions of matrices are of integers' float64, too, and
/// cumsum and cumprod of their int64. Values
/// that occur again are computed once, but for results of these, and what leads
/// to nothing that is kept or written is not computed; a statement reads what
/// there was before it.
///
/// Errors  INVALID_ARGUMENT, message with line and column; reasons
///         NAME_UNKNOWN; NAME_IS_SCALAR; NAME_IS_TENSOR: in a divisor, with
///         modes; DIVISION_BY_ZERO: by a number; OPERATOR_NEEDS_ORDER,
///         OPERATOR_NEEDS_NUMBERS: of a function; OPERAND_REPEATED: a name
///         twice; MODE_COUNT_MISMATCH; MODE_EXTENT_MISMATCH: names the label
///         and both extents; OUTPUT_UNKNOWN; CONSTANT_WRITTEN: to a constant
///         operand; COST_LABEL_UNKNOWN: no statement has that label;
///         COST_CONFLICT: with a method that looks at extents; SYNTAX_ERROR: an
///         option of a function of whole tensors; and those of ParseCosts(),
///         FindPath(), ValidateScalar() and of the operations.
///         UNIMPLEMENTED: element types that do not go together.
///         RESOURCE_EXHAUSTED, reason PATH_MEMORY_LIMIT.
absl::StatusOr<Program> LowerProgram(const ProgramSyntax& syntax,
                                     absl::Span<const NamedOperand> operands,
                                     absl::Span<const NamedOutput> outputs,
                                     const LoweringOptions& options);

/// The program of one product of all operands, with one output. An extent of 1
/// goes with any other.
///
/// Errors  as LowerProgram().
absl::StatusOr<Program> LowerEinsum(const EinsumSyntax& syntax,
                                    absl::Span<const NamedOperand> operands,
                                    const NamedOutput& output,
                                    const LoweringOptions& options);

}  // namespace tensord::core
