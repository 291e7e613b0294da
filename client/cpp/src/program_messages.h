// Programs as messages of the contract, and back.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/src/connection.h"
#include "tensord/program.h"
#include "tensord/v1/program.pb.h"

namespace tensord::internal {

using ProgramOperandMessages =
    google::protobuf::RepeatedPtrField<v1::ProgramOperand>;

/// Whether elements of the caller's memory travel, or only what they are like.
enum class Contents { kSent, kLeftOut };

/// Errors  INVALID_ARGUMENT: an inline operand whose layout makes no sense, or
///         that lacks its data.
absl::Status AddOperands(ProgramOperands operands, Contents contents,
                         ProgramOperandMessages& to);
/// Errors  as AddOperands().
absl::StatusOr<v1::ProgramSpec> MakeSpec(const Connection& connection,
                                         const ProgramSource& source,
                                         ProgramOperands operands,
                                         const ProgramOptions& options,
                                         Contents contents);
v1::ProgramOutput ToProto(const ProgramOutput& output);

ProgramReport FromProto(const v1::ProgramReport& report);
ProgramExplanation FromProto(const v1::ProgramExplanation& explanation);
ProgramInfo FromProto(const v1::Program& program);

/// Makes handles of what programs make.
class ProgramCalls {
 public:
  static absl::StatusOr<ProgramResults> Execute(
      const std::shared_ptr<Connection>& connection,
      const v1::ExecuteProgramRequest& request,
      std::optional<absl::Duration> deadline);
};

}  // namespace tensord::internal
