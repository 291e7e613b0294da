// What the control groups of the process, as of a container, leave to it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::server {

/// The least of what `read` finds in the folders of the process's group and of
/// those around it, where `controller`, e.g. "memory", keeps its files; none:
/// there is no limit. `read` is told the folder and the version, 1 or 2.
///
/// `root` is the root of the file system, another one in tests.
std::optional<double> LeastLimit(
    const std::string& root, absl::string_view controller,
    const std::function<std::optional<double>(const std::string&, int)>& read);

/// How many cores' time the process may have; none: all of them.
std::optional<double> CoreQuota(const std::string& root = "");

}  // namespace tensord::server
