// What solving linear equations asks for, and functions of matrices.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/element_type.h"
#include "core/ops/operand.h"

namespace tensord::core {

/// What is known of matrices, and which of their elements are read.
enum class MatrixStructure {
  kGeneral,
  kLowerTriangular,   // the triangle alone
  kUpperTriangular,   // the triangle alone
  kHermitian,         // its lower triangle
  kPositiveDefinite,  // Hermitian, all eigenvalues above 0; its lower triangle
};
inline constexpr int kMatrixStructureCount = 5;

/// "general", "lower_triangular", "upper_triangular", "hermitian",
/// "positive_definite"
absl::string_view NameOf(MatrixStructure structure);

inline bool IsTriangular(MatrixStructure structure) {
  return structure == MatrixStructure::kLowerTriangular ||
         structure == MatrixStructure::kUpperTriangular;
}

/// What is computed of matrices alone.
enum class MatrixFunction {
  kInverse,
  kExponential,  // the sum of a^k / k!
};
inline constexpr int kMatrixFunctionCount = 2;

/// "inverse", "exponential"
absl::string_view NameOf(MatrixFunction function);

/// d of  unary(a) * d = unary(b)  where, for every value of the batch modes, a
/// is a square matrix and the product is summed over a's columns.
///
/// A mode of all three is a batch mode; one of a and b alone counts rows, one
/// of a and d alone columns, one of b and d alone right sides. Rows are
/// numbered in the order of b's modes, columns in that of d's, the last one
/// fastest, whatever the layouts.
///
/// Without b, which is then the identity, d is the inverse. Rows are the modes
/// of a that d lacks, at least one, in a's order; d has as many that a lacks,
/// in their order, each as long as its row's. Columns are as many, the last
/// ones of d that a has; the others that both have are batch modes. Where there
/// are any, d's own modes come last.
///
/// The exponential of a has no b. Columns are the modes of a that d lacks, at
/// least one; d has as many that a lacks, in their order, each as long as its
/// column's. Rows are as many, the last ones of a that d has, and the others
/// batch modes. Rows and columns are numbered in a's order. A matrix of two
/// modes may have both in d: the first one of a is the row.
struct LinearSolveDesc {
  MatrixFunction function = MatrixFunction::kInverse;
  MatrixStructure structure = MatrixStructure::kGeneral;
  /// Of a triangle: its diagonal is ones, and not read.
  bool has_unit_diagonal = false;
  OperandDesc a;
  std::optional<OperandDesc> b;
  OperandDesc d;

  bool operator==(const LinearSolveDesc&) const = default;
};

/// What the modes stand for.
struct LinearSolveModes {
  Modes batch;
  Modes rows;     // in b's order, or a's
  Modes columns;  // in d's order, of an exponential in a's
  Modes sides;    // in d's order
  /// Without b: the modes of a that sides, in their order, are as long as.
  Modes sides_in_a;
};

/// Of a d with those modes. b is null where there is none.
///
/// Errors  INVALID_ARGUMENT: a mode of one operand alone, reason
///         MODE_NOT_IN_OUTPUT or MODE_NOT_IN_INPUT; not the modes that an
///         inverse or an exponential has, MODES_OF_INVERSE,
///         MODES_OF_EXPONENTIAL; a b of an exponential, RIGHT_SIDE_UNWANTED;
///         MATRIX_NOT_SQUARE; MATRIX_TOO_LARGE: more rows or columns than int64
///         counts.
absl::StatusOr<LinearSolveModes> GroupModes(MatrixFunction function,
                                            const OperandDesc& a,
                                            const OperandDesc* b,
                                            const Modes& d);

/// Errors  INVALID_ARGUMENT: modes, extents or strides that do not fit; an
///         operator other than IDENTITY and CONJ; a unit diagonal of what is no
///         triangle, reason UNIT_DIAGONAL_WITHOUT_TRIANGLE. UNIMPLEMENTED:
///         element types other than float32, float64, complex64 and complex128,
///         or different ones.
absl::Status Validate(const LinearSolveDesc& desc);

}  // namespace tensord::core
