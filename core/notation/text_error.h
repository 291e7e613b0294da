// Errors at a place in a text.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"
#include "core/notation/syntax.h"

namespace tensord::core {

/// INVALID_ARGUMENT with the place first: "line 2, column 14: ...".
template <typename... Parts>
absl::Status ErrorAt(TextPosition position, absl::string_view reason,
                     const Parts&... parts) {
  return InvalidArgument(reason, "line ", position.line, ", column ",
                         position.column, ": ", parts...);
}

/// `status` with a place in front of its message.
inline absl::Status PlacedAt(TextPosition position,
                             const absl::Status& status) {
  return Error(status.code(), ReasonOf(status),
               absl::StrCat("line ", position.line, ", column ",
                            position.column, ": ", status.message()));
}

/// A second place in a message that begins with `from`.
inline std::string PlaceSeenFrom(TextPosition from, TextPosition place) {
  const std::string column = absl::StrCat("column ", place.column);
  return from.line == place.line
             ? column
             : absl::StrCat("line ", place.line, ", ", column);
}

}  // namespace tensord::core
