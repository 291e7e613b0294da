// What a program would do, said to people and to programs.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "server/execution/program/prepared_program.h"
#include "tensord/v1/program.pb.h"

namespace tensord::rpc {

/// `plans` are those of program.keys().
v1::ProgramExplanation Explain(
    const server::PreparedProgram& program,
    const std::vector<std::shared_ptr<const core::Plan>>& plans);

/// True when an explanation is larger than gRPC's clients take by default.
bool IsTooLarge(const v1::ProgramExplanation& explanation);

/// Leaves only the totals of an explanation that IsTooLarge().
void Shorten(v1::ProgramExplanation& explanation);

}  // namespace tensord::rpc
