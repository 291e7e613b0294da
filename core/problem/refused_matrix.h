// What there is to say of matrices that cannot be decomposed or solved.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "core/ops/factorization.h"
#include "core/ops/linear_solve.h"

namespace tensord::core {

absl::Status NotFinite(FactorizationMethod method, int64_t rows,
                       int64_t columns, int64_t column);
absl::Status NotPositiveDefinite(int64_t n, int64_t minor);
absl::Status DidNotConverge(FactorizationMethod method, int64_t rows,
                            int64_t columns);

/// A matrix of equations: that `number` of `count`, in memory's order.
struct SolvedMatrix {
  int64_t extent = 1;
  int64_t number = 0;
  int64_t count = 1;
};

absl::Status NotFinite(const SolvedMatrix& matrix, int64_t column);
/// `pivot`: the first that is none, counted from 1.
absl::Status NotSolvable(MatrixStructure structure, const SolvedMatrix& matrix,
                         int64_t pivot);

}  // namespace tensord::core
