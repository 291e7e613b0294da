// Where a test finds what it needs and keeps its files.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tensord::testing {

/// A file or folder of the repository that this was built from.
std::string InRepository(absl::string_view path);

/// A program or module that was built beside this program.
std::string Built(absl::string_view name);

/// A folder of this process, removed with all that is in it at the process's
/// end: tests that run beside each other never see each other's files.
const std::string& TemporaryFolder();

}  // namespace tensord::testing
