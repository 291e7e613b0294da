// What a factorization asks for.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/element_type.h"
#include "core/ops/operand.h"

namespace tensord::core {

enum class FactorizationMethod { kQr };
inline constexpr int kFactorizationMethodCount = 1;

/// "qr"
absl::string_view NameOf(FactorizationMethod method);

/// a = q * r, summed over the one mode that q and r share and a lacks: the
/// inner mode. A mode of a is a batch mode if q and r have it, a row if q alone
/// does, a column if r alone does. For every value of the batch modes, a is a
/// matrix. Its columns are numbered in the order of r's modes, the last one
/// fastest, whatever the layouts; the order of rows changes nothing.
///
/// QR is thin: the inner mode has as many elements as the shorter side of the
/// matrix. The columns of q are orthonormal; r is zero below its diagonal,
/// which is real and not negative. Where the matrix has full rank, there is but
/// one such q and r.
struct FactorizationDesc {
  FactorizationMethod method = FactorizationMethod::kQr;
  OperandDesc a;
  OperandDesc q;
  OperandDesc r;

  bool operator==(const FactorizationDesc&) const = default;
};

/// How many elements the inner mode has, for a mode list of q and of r.
///
/// Errors  INVALID_ARGUMENT, reason MATRIX_TOO_LARGE: more rows or columns than
///         int64 counts.
absl::StatusOr<int64_t> InnerExtent(const OperandDesc& a, const Modes& q,
                                    const Modes& r);

/// Errors  INVALID_ARGUMENT: modes, extents or strides that do not fit; no
///         inner mode, or several; an operator. UNIMPLEMENTED: element types
///         other than float32, float64, complex64 and complex128, or different
///         ones.
absl::Status Validate(const FactorizationDesc& desc);

}  // namespace tensord::core
