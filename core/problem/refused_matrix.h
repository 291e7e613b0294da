// What there is to say of matrices that cannot be decomposed.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "core/base/status.h"
#include "core/ops/factorization.h"

namespace tensord::core {

inline absl::Status NotFinite(FactorizationMethod method, int64_t rows,
                              int64_t columns, int64_t column) {
  return InvalidArgument("MATRIX_NOT_FINITE", "a, a matrix of ", rows, " x ",
                         columns, ", has an element in column ", column,
                         " that is NaN or infinite; ", NameOf(method),
                         " wants finite numbers");
}

inline absl::Status NotPositiveDefinite(int64_t n, int64_t minor) {
  return InvalidArgument("MATRIX_NOT_POSITIVE_DEFINITE", "a, a matrix of ", n,
                         " x ", n, ", is not positive definite: its leading ",
                         minor, " x ", minor, " part is not");
}

inline absl::Status DidNotConverge(FactorizationMethod method, int64_t rows,
                                   int64_t columns) {
  return Internal("DID_NOT_CONVERGE", NameOf(method), " of a matrix of ", rows,
                  " x ", columns, " did not converge");
}

}  // namespace tensord::core
