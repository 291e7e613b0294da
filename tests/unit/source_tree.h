// The repository's sources, for tests that read them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tensord::test {

/// Files by their path from the root of the repository. Those that are no
/// sources are empty.
using SourceTree = std::map<std::string, std::string>;

SourceTree ReadRepository();

bool IsHeader(absl::string_view path);
bool IsSource(absl::string_view path);

/// What `text` includes, as it says it.
std::vector<std::string> IncludesOf(absl::string_view text);

}  // namespace tensord::test
