// Functions of whole tensors -> operations.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/element_type.h"
#include "core/notation/program/bind.h"
#include "core/notation/syntax.h"
#include "core/ops/any_desc.h"
#include "core/ops/operand.h"

namespace tensord::core {

/// The type that arguments get: theirs, of integers int64 where they are added
/// or multiplied along an index, and float64 where they are matrices.
ElementType ArgumentTypeOf(const StatementCall& call,
                           const BoundStatementCall& bound);
/// That of result number `i`: values of matrices are real, indices int64.
ElementType ResultTypeOf(const StatementCall& call,
                         const BoundStatementCall& bound, size_t i);

/// The modes of argument or result number `i` in the order that numbers rows
/// and columns: that of the first argument, batches of eigenvectors before
/// rows, and what the first argument lacks behind. How results lie is another
/// matter.
std::vector<Mode> ArgumentModesOf(const BoundStatementCall& bound, size_t i);
std::vector<Mode> ResultModesOf(const BoundStatementCall& bound, size_t i);

/// Gives those indices their extents that results alone have: the inner one of
/// a factorization, as long as the matrix's shorter side or as `rank`, and
/// those of an inverse or an exponential. Those of results that are there
/// already stay as they are.
///
/// Errors  INVALID_ARGUMENT, with line and column, labels in place of modes:
///         what GroupModes() says; MODE_NOT_IN_INPUT: along an index, of one
///         that the argument lacks.
absl::Status SetResultExtents(const StatementCall& call,
                              const BoundStatementCall& bound,
                              Bindings& bindings);

/// The operation on operands with the modes of `bound`; valid.
///
/// Errors  INVALID_ARGUMENT or UNIMPLEMENTED, likewise: what Validate() and
///         ValidateRank() say.
absl::StatusOr<AnyDesc> CallDescOf(const StatementCall& call,
                                   const BoundStatementCall& bound,
                                   absl::Span<const OperandDesc> inputs,
                                   absl::Span<const OperandDesc> outputs,
                                   const Bindings& bindings);

}  // namespace tensord::core
