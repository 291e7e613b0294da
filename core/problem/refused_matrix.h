// What there is to say of matrices that cannot be decomposed or solved.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "core/ops/factorization.h"
#include "core/ops/linear_solve.h"

namespace tensord::core {

/// A matrix of an operand a: that `number` of `count`, in memory's order.
struct NumberedMatrix {
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t number = 0;
  int64_t count = 1;
};

// Of what is decomposed. `minor`: the first leading part that is not.
absl::Status NotFinite(FactorizationMethod method, const NumberedMatrix& matrix,
                       int64_t column);
absl::Status NotPositiveDefinite(const NumberedMatrix& matrix, int64_t minor);
absl::Status DidNotConverge(FactorizationMethod method,
                            const NumberedMatrix& matrix);

// Of equations and exponentials. `pivot`: the first that is none, counted
// from 1.
absl::Status NotFinite(const NumberedMatrix& matrix, int64_t column);
absl::Status NotSolvable(MatrixStructure structure,
                         const NumberedMatrix& matrix, int64_t pivot);

}  // namespace tensord::core
