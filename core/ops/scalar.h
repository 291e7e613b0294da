// The factors alpha, beta and gamma.
#pragma once

#include <array>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/element_type.h"

namespace tensord::core {

/// A factor, given at execution. Rounded to the compute type where it is used.
struct Scalar {
  double real = 0;
  double imaginary = 0;

  bool IsZero() const { return real == 0 && imaginary == 0; }
  bool IsOne() const { return real == 1 && imaginary == 0; }
  bool operator==(const Scalar&) const = default;
};
inline constexpr Scalar kOne{1, 0};
inline constexpr Scalar kZero{0, 0};

/// OK when `scalar` can multiply elements of `type`.
///
/// Errors  INVALID_ARGUMENT: an imaginary part with a real type; NaN, an
///         infinity, a fraction or a magnitude of 2^63 or more with an integer
///         type. `what` names the factor in the message.
absl::Status ValidateScalar(const Scalar& scalar, ElementType type,
                            absl::string_view what);

/// Room for one element of any type.
using ElementBytes = std::array<std::byte, 16>;

/// The element of `type` nearest to `scalar`, and zeros behind it. float16 and
/// bfloat16 are rounded by way of float32.
///
/// Errors  INVALID_ARGUMENT: what ValidateScalar() refuses; a finite value
///         beyond the type's range, for bool another than 0 and 1. `what`
///         names the scalar in the message.
absl::StatusOr<ElementBytes> ElementOf(const Scalar& scalar, ElementType type,
                                       absl::string_view what);

}  // namespace tensord::core
