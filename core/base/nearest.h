// What somebody may have meant by a name that nobody knows.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tensord::core {

/// The one of `known` that begins with `name`, or else is most similar to it; ""
/// if none is.
std::string Nearest(absl::string_view name,
                    const std::vector<std::string>& known);

}  // namespace tensord::core
