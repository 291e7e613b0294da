// What a request gives a program, against what the program is made for.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/notation/program/lower.h"
#include "core/notation/program/program.h"
#include "server/execution/program/prepared_program.h"
#include "server/execution/program/program_request.h"
#include "server/session/session.h"
#include "server/session/stored_tensor.h"

namespace tensord::server {

/// The operands that a request names or carries.
struct FoundOperands {
  /// Null for scalars and inline tensors.
  std::vector<std::shared_ptr<StoredTensor>> tensors;
  std::vector<core::TensorDesc> descs;        // as they are read and written
  std::vector<core::NamedOperand> described;  // for lowering
};

/// Inline operands need data only where `has_data`.
/// Errors  NOT_FOUND; INVALID_ARGUMENT.
absl::StatusOr<FoundOperands> FindOperands(
    const Session& session, absl::Span<const ProgramOperandRequest> operands,
    bool has_data);

/// OK when no operand is constant.
/// Errors  INVALID_ARGUMENT, reason CONSTANT_NOT_PREPARED.
absl::Status CheckNoConstants(absl::Span<const ProgramOperandRequest> operands);

/// OK when operands that are constant are resident tensors.
/// Errors  INVALID_ARGUMENT, reason CONSTANT_NOT_RESIDENT.
absl::Status CheckConstants(absl::Span<const ProgramOperandRequest> operands);

/// `given` in the order of the program's operands: by name or, without one, by
/// place. Scalars and constants that are left out are the program's.
/// Errors  INVALID_ARGUMENT, reasons NAME_UNKNOWN, OPERAND_REPEATED,
///         INPUT_MISSING, CONSTANT_NOT_RESIDENT.
absl::StatusOr<std::vector<ProgramOperandRequest>> InOrder(
    std::vector<ProgramOperandRequest> given, const PreparedProgram& program);

/// OK when `given` are like `wanted` but for the values of scalars.
/// Errors  INVALID_ARGUMENT, reason PROGRAM_OPERAND_DIFFERS.
absl::Status CheckAreLike(const std::vector<core::NamedOperand>& given,
                          const std::vector<core::NamedOperand>& wanted);

/// OK when `program` makes what is asked of it.
/// Errors  INVALID_ARGUMENT, reasons OUTPUT_UNKNOWN, OUTPUT_DIFFERS.
absl::Status CheckOutputs(absl::Span<const ProgramOutputRequest> outputs,
                          const core::Program& program);

/// OK when the outputs of `made` have the types of those of `wanted`, the same
/// program with other scalars.
/// Errors  INVALID_ARGUMENT, reason PROGRAM_OPERAND_DIFFERS.
absl::Status CheckMakesLike(const core::Program& made,
                            const core::Program& wanted);

}  // namespace tensord::server
