#include "core/ops/scalar.h"

#include <cmath>

#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace tensord::core {

absl::Status ValidateScalar(const Scalar& scalar, ElementType type,
                            absl::string_view what) {
  if (!IsComplex(type) && scalar.imaginary != 0) {
    return InvalidArgument("SCALAR_NOT_REAL", what, " is ", scalar.real, " + ",
                           scalar.imaginary, "i, wanted a real number for ",
                           NameOf(type));
  }
  if (IsInteger(type) && !(std::trunc(scalar.real) == scalar.real &&
                           std::abs(scalar.real) < 0x1p63)) {
    return InvalidArgument("SCALAR_NOT_INTEGER", what, " is ", scalar.real,
                           ", wanted an integer for ", NameOf(type));
  }
  return absl::OkStatus();
}

}  // namespace tensord::core
