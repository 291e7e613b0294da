// Statements, written.
#pragma once

#include <string>

#include "core/notation/syntax.h"

namespace tensord::core {

/// The statements as ParseProgram() reads them, one a line, with blanks around
/// assignments and between terms only.
///
/// Requires  what ParseProgram() gives.
/// Post      reads back the same but for positions.
std::string ToText(const ProgramSyntax& program);
std::string ToText(const Statement& statement);
std::string ToText(const Sum& sum);
std::string ToText(const Factor& factor);
std::string ToText(const TensorReference& reference);
/// As it is written; of what Call::taken is, the tensor in its place.
std::string ToText(const Label& label);

/// What operands of a call stand for in messages of the operation: "svd() of a
/// = 'T[a,b]': ". Long ones are cut.
std::string RolesOf(const StatementCall& call);

}  // namespace tensord::core
