#include "core/ops/scalar.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

/// Rounds `from` to `to`; false when that takes it out of the type's range.
template <typename T>
bool Round(const Scalar& from, T* to) {
  if constexpr (kIsComplex<T>) {
    typename T::value_type real{}, imaginary{};
    const bool fits =
        Round({from.real, 0}, &real) && Round({from.imaginary, 0}, &imaginary);
    *to = T(real, imaginary);
    return fits;
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (from.real < static_cast<double>(Limits::min()) ||
        from.real > static_cast<double>(Limits::max())) {
      return false;
    }
    *to = static_cast<T>(from.real);
    return true;
  } else if constexpr (kIsHalf<T>) {
    *to = T::From(static_cast<float>(from.real));
    return std::isfinite(to->ToFloat()) || !std::isfinite(from.real);
  } else {
    *to = static_cast<T>(from.real);
    return std::isfinite(*to) || !std::isfinite(from.real);
  }
}

}  // namespace

absl::Status ValidateScalar(const Scalar& scalar, ElementType type,
                            absl::string_view what) {
  if (!IsComplex(type) && scalar.imaginary != 0) {
    return InvalidArgument("SCALAR_NOT_REAL", what, " is ", scalar.real, " + ",
                           scalar.imaginary, "i, wanted a real number for ",
                           NameOf(type));
  }
  if (IsInteger(type) && !(std::trunc(scalar.real) == scalar.real &&
                           scalar.real >= -0x1p63 && scalar.real < 0x1p63)) {
    return InvalidArgument("SCALAR_NOT_INTEGER", what, " is ", scalar.real,
                           ", wanted an integer for ", NameOf(type));
  }
  return absl::OkStatus();
}

absl::StatusOr<ElementBytes> ElementOf(const Scalar& scalar, ElementType type,
                                       absl::string_view what) {
  TENSORD_RETURN_IF_ERROR(ValidateScalar(scalar, type, what));
  ElementBytes bytes{};
  const bool fits = VisitElementType(type, [&](auto element) {
    if (!Round(scalar, &element)) return false;
    std::memcpy(bytes.data(), &element, sizeof(element));
    return true;
  });
  if (!fits) {
    return InvalidArgument("SCALAR_OUT_OF_RANGE", what, " is ", scalar.real,
                           scalar.imaginary == 0
                               ? std::string()
                               : absl::StrCat(" + ", scalar.imaginary, "i"),
                           ", beyond the range of ", NameOf(type));
  }
  return bytes;
}

}  // namespace tensord::core
