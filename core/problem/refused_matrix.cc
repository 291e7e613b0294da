#include "core/problem/refused_matrix.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

/// "a matrix of 3 x 3, number 1 of 2 in memory's order"
std::string Named(const NumberedMatrix& matrix) {
  const std::string one =
      absl::StrCat("a matrix of ", matrix.rows, " x ", matrix.columns);
  if (matrix.count == 1) return one;
  return absl::StrCat(one, ", number ", matrix.number, " of ", matrix.count,
                      " in memory's order");
}

}  // namespace

absl::Status NotFinite(FactorizationMethod method, const NumberedMatrix& matrix,
                       int64_t column) {
  return InvalidArgument("MATRIX_NOT_FINITE", "a, ", Named(matrix),
                         ", has an element in column ", column,
                         " that is NaN or infinite; ", NameOf(method),
                         " wants finite numbers");
}

absl::Status NotPositiveDefinite(const NumberedMatrix& matrix, int64_t minor) {
  return InvalidArgument("MATRIX_NOT_POSITIVE_DEFINITE", "a, ", Named(matrix),
                         ", is not positive definite: its leading ", minor,
                         " x ", minor, " part is not");
}

absl::Status DidNotConverge(FactorizationMethod method,
                            const NumberedMatrix& matrix) {
  return Internal("DID_NOT_CONVERGE", NameOf(method), " of a, ", Named(matrix),
                  ", did not converge");
}

absl::Status NotFinite(const NumberedMatrix& matrix, int64_t column) {
  return InvalidArgument("MATRIX_NOT_FINITE", "a, ", Named(matrix),
                         ", has an element in column ", column,
                         " that is NaN or infinite, wanted finite numbers");
}

absl::Status NotSolvable(MatrixStructure structure,
                         const NumberedMatrix& matrix, int64_t pivot) {
  if (structure == MatrixStructure::kPositiveDefinite) {
    return NotPositiveDefinite(matrix, pivot);
  }
  if (IsTriangular(structure)) {
    return InvalidArgument("MATRIX_SINGULAR", "a, ", Named(matrix),
                           ", is singular: element ", pivot - 1,
                           " of its diagonal is 0");
  }
  return InvalidArgument("MATRIX_SINGULAR", "a, ", Named(matrix),
                         ", is singular: no element of column ", pivot - 1,
                         " is left to eliminate with");
}

}  // namespace tensord::core
