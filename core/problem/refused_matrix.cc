#include "core/problem/refused_matrix.h"

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

std::string Named(const SolvedMatrix& matrix) {
  const std::string one =
      absl::StrCat("a, a matrix of ", matrix.extent, " x ", matrix.extent);
  if (matrix.count == 1) return one;
  return absl::StrCat(one, ", number ", matrix.number, " of ", matrix.count,
                      " in memory's order");
}

std::string MinorIsNot(int64_t minor) {
  return absl::StrCat(", is not positive definite: its leading ", minor, " x ",
                      minor, " part is not");
}

}  // namespace

absl::Status NotFinite(FactorizationMethod method, int64_t rows,
                       int64_t columns, int64_t column) {
  return InvalidArgument("MATRIX_NOT_FINITE", "a, a matrix of ", rows, " x ",
                         columns, ", has an element in column ", column,
                         " that is NaN or infinite; ", NameOf(method),
                         " wants finite numbers");
}

absl::Status NotPositiveDefinite(int64_t n, int64_t minor) {
  return InvalidArgument("MATRIX_NOT_POSITIVE_DEFINITE", Named({.extent = n}),
                         MinorIsNot(minor));
}

absl::Status DidNotConverge(FactorizationMethod method, int64_t rows,
                            int64_t columns) {
  return Internal("DID_NOT_CONVERGE", NameOf(method), " of a matrix of ", rows,
                  " x ", columns, " did not converge");
}

absl::Status NotFinite(const SolvedMatrix& matrix, int64_t column) {
  return InvalidArgument("MATRIX_NOT_FINITE", Named(matrix),
                         ", has an element in column ", column,
                         " that is NaN or infinite; wanted finite numbers "
                         "where equations are solved");
}

absl::Status NotSolvable(MatrixStructure structure, const SolvedMatrix& matrix,
                         int64_t pivot) {
  if (structure == MatrixStructure::kPositiveDefinite) {
    return InvalidArgument("MATRIX_NOT_POSITIVE_DEFINITE", Named(matrix),
                           MinorIsNot(pivot));
  }
  if (IsTriangular(structure)) {
    return InvalidArgument("MATRIX_SINGULAR", Named(matrix),
                           ", is singular: element ", pivot - 1,
                           " of its diagonal is 0");
  }
  return InvalidArgument("MATRIX_SINGULAR", Named(matrix),
                         ", is singular: no element of column ", pivot - 1,
                         " is left to eliminate with");
}

}  // namespace tensord::core
