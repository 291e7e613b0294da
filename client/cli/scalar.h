// Factors on the command line.
#pragma once

#include <optional>
#include <string_view>

#include "tensord/operations.h"

namespace tensord::cli {

/// The number that `text` is: `1.5`, or a complex one as Python writes it,
/// `1.5-2j`, or as `1.5,-2`.
std::optional<Scalar> ParseScalar(std::string_view text);

}  // namespace tensord::cli
