// Arguments that name a part of a file: `a.npy[1:5, ::-1]`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensord/operations.h"
#include "tensord/views.h"

namespace tensord::cli {

/// A .npy file, and which part of it is meant.
struct IndexedFile {
  std::string path;
  std::optional<std::vector<IndexItem>> items;  // absent: all
};

/// Reads `path` or `path[items]`, the items as NumPy has them: numbers,
/// start:stop:step, `...` and `None`.
///
/// Errors  INVALID_ARGUMENT: says which item is malformed.
absl::StatusOr<IndexedFile> ParseIndexedFile(const std::string& argument);

/// Reads `1:2,0:3`: padding before and after, a pair a mode, with value 0.
///
/// Errors  INVALID_ARGUMENT.
absl::StatusOr<OutputPadding> ParsePadding(const std::string& text);

}  // namespace tensord::cli
