// Programs on the command line, and what servers tell about them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
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

/// OK unless two of `outputs`, names and files, are one file.
///
/// Errors  INVALID_ARGUMENT.
absl::Status CheckFilesDiffer(const std::vector<Binding>& outputs);

/// Statements: those on stdin if `source` is `-`, else those in the file of
/// that name, else `source` itself if it contains a `=`.
///
/// Errors  NOT_FOUND: it is none of these. What the system says of the file.
absl::StatusOr<std::string> ReadStatements(const std::string& source);

/// All of the explanation but `text`, as one object.
Json ToJson(const ProgramExplanation& explanation);

}  // namespace tensord::cli
