// What there is to say of matrices that cannot be decomposed.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "core/backend/cpu/factorization/decomposition.h"
#include "core/base/status.h"

namespace tensord::core {

inline absl::Status NotPositiveDefinite(int64_t n, int64_t minor) {
  return InvalidArgument("MATRIX_NOT_POSITIVE_DEFINITE", "a, a matrix of ", n,
                         " x ", n, ", is not positive definite: its leading ",
                         minor, " x ", minor, " part is not");
}

template <typename W>
absl::Status DidNotConverge(const Decomposed<W>& m) {
  return Internal("DID_NOT_CONVERGE", "the decomposition of a matrix of ",
                  m.rows, " x ", m.columns, " did not converge");
}

}  // namespace tensord::core
