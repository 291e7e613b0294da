// Programs on the command line, and what servers tell about them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/json.h"
#include "tensord/program.h"

namespace tensord::cli {

/// `A=a.npy` taken apart.
struct Binding {
  std::string name;
  std::string value;
};

/// Errors  INVALID_ARGUMENT: not of the form NAME=VALUE, or a name twice.
absl::StatusOr<std::vector<Binding>> ParseBindings(
    const std::vector<std::string>& words);

/// The statements that `source` means: those of a file of that name, those on
/// stdin if it is `-`, or those that it is, when it has a `=`.
///
/// Errors  NOT_FOUND: it is none of them. As the system says.
absl::StatusOr<std::string> ReadStatements(const std::string& source);

/// All of the explanation but `text`, as one object.
Json ToJson(const ProgramExplanation& explanation);

}  // namespace tensord::cli
