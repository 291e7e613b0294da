// Subscripts of Einstein sums, as NumPy and NCON write them, read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/notation/syntax.h"

namespace tensord::core {

/// The labels of a product of tensors. An index is summed when the output lacks
/// it, however often it occurs.
struct EinsumSyntax {
  std::vector<Labels> inputs;  // (operand)(mode)
  Labels output;               // (mode), distinct, each in some operand
  /// Of the indices that are summed, the order in which they are to be; empty:
  /// any order.
  std::vector<std::string> order;
};

/// Reads subscripts as `numpy.einsum` does, with any letter of any alphabet:
/// "ij,jk->ik", "...ij,...jk", "ii->i", "i,i,i->". Spaces do not matter
/// but in `...` and `->`. Without `->` the output has, behind the ellipsis'
/// modes, the labels that occur once, in alphabetical order.
///
/// `mode_counts` says how many modes each operand has. The modes of ellipses,
/// aligned at the last, are labelled `...0`, `...1` and so on from the left.
///
/// Errors  INVALID_ARGUMENT, message with the column; reasons
///         SUBSCRIPTS_MALFORMED; OPERAND_COUNT_MISMATCH; MODE_COUNT_MISMATCH;
///         MODE_NOT_IN_INPUT and MODE_REPEATED: of an output's label;
///         ELLIPSIS_DROPPED: an operand's ellipsis has modes, and the output
///         has none; PROGRAM_TOO_LONG.
absl::StatusOr<EinsumSyntax> ParseEinsum(absl::string_view subscripts,
                                         absl::Span<const int> mode_counts,
                                         const NotationLimits& limits = {});

/// Reads NCON's form: for every operand one number a mode. Positive ones occur
/// twice, perhaps in one operand, and are summed, in ascending order or in
/// `order`; negative ones occur once and are the output's modes, -1 first, or
/// as in `output` when that is not empty.
///
/// Errors  INVALID_ARGUMENT; reasons NCON_MALFORMED; MODE_COUNT_MISMATCH;
///         OPERAND_COUNT_MISMATCH; PROGRAM_TOO_LONG.
absl::StatusOr<EinsumSyntax> ParseNcon(
    absl::Span<const std::vector<int64_t>> labels,  // (operand)(mode)
    absl::Span<const int64_t> order, absl::Span<const int64_t> output,
    absl::Span<const int> mode_counts, const NotationLimits& limits = {});

}  // namespace tensord::core
