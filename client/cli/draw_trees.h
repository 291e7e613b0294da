// Pictures of contraction orders, in files.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "tensord/program.h"

namespace tensord::cli {

/// Draws the trees of `explanation` into the file `path`: an SVG picture into
/// one that ends with .svg, the explanation's text into .txt. rsvg-convert
/// makes the picture for .png.
///
/// Errors  FAILED_PRECONDITION: no product has a tree. INVALID_ARGUMENT: the
///         name ends with something else. UNAVAILABLE: rsvg-convert is not
///         installed, or failed. Those of writing.
absl::Status DrawTrees(const ProgramExplanation& explanation,
                       const std::string& path);

}  // namespace tensord::cli
