// What a factorization asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/element_type.h"
#include "core/ops/operand.h"

namespace tensord::core {

enum class FactorizationMethod { kQr, kLq, kSvd, kEigh, kCholesky };
inline constexpr int kFactorizationMethodCount = 5;

/// "qr", "lq", "svd", "eigh", "cholesky"
absl::string_view NameOf(FactorizationMethod method);

/// What users call the results, in their order: q r, l q, u s v, w v, l. Of
/// an SVD whose values go into its factors, u v.
absl::Span<const absl::string_view> ResultNamesOf(FactorizationMethod method,
                                                  bool has_values);

/// Which of so many results, in that order, is which factor; nothing: none is.
struct FactorPlaces {
  size_t left = 0;
  std::optional<size_t> right, values;
};
FactorPlaces PlacesOf(FactorizationMethod method, size_t result_count);

/// An SVD of few values may be computed of what the products of a matrix with
/// random columns span, so many more columns than values. A power iteration, a
/// product with the adjoint and one with the matrix, turns the span towards
/// large values. The expected norm of what is missed, p columns more than the k
/// values kept of n, and q iterations, is at most the first value that is not
/// kept times the 2 q + 1-st root of
///   1 + sqrt(k / (p - 1)) + e / p sqrt((k + p) (n - k))
/// (Halko, Martinsson and Tropp, Finding Structure with Randomness, 2011,
/// corollary 10.10).
struct Sampling {
  int64_t oversampling = 10;
  int64_t power_iterations = 2;

  bool operator==(const Sampling&) const = default;
};

/// Errors  INVALID_ARGUMENT, reason SAMPLING_OUT_OF_RANGE: a number below 0 or
///         far too large; SAMPLING_WITHOUT_RANK; SAMPLING_WITHOUT_SVD.
absl::Status Validate(const Sampling& sampling, FactorizationMethod method,
                      std::optional<int64_t> rank);

/// For every value of its batch modes, a is a matrix, and
///
///   a = left * diag(values) * right      summed over the inner mode
///
///   QR        left * right: thin; the columns of left are orthonormal, right
///             is zero below its diagonal, which is real and not negative.
///             Where the matrix has full rank there is but one such pair.
///   LQ        left * right: QR of the transposed matrix, transposed.
///   SVD       left's columns and right's rows are orthonormal, values are not
///             negative and descend. Thin, or of as many values as the inner
///             mode has, the largest.
///   EIGH      of a Hermitian matrix, of which the lower triangle is read:
///             right is the adjoint of left and no result; values ascend.
///   CHOLESKY  of a positive definite Hermitian matrix, of which the lower
///             triangle is read: right is the adjoint of left and no result;
///             left is zero above its diagonal, which is positive.
///
/// The inner mode is the one that all results have and a lacks. With a right
/// factor, a mode of a is a batch mode if left and right have it, a row if left
/// alone does, a column if right alone does. Without, columns are the modes of
/// a that left lacks; of left's modes that a has, the last ones, as many, are
/// the rows, each as long as its column, and the others are batch modes. Rows
/// are numbered in the order of left's modes, columns in that of right's or
/// else a's, the last one fastest, whatever the layouts.
struct FactorizationDesc {
  FactorizationMethod method = FactorizationMethod::kQr;
  OperandDesc a;
  OperandDesc left;
  std::optional<OperandDesc> right;   // of QR, LQ and SVD
  std::optional<OperandDesc> values;  // of SVD, unless absorbed; of EIGH. Real.
  /// Of an SVD: its values may be those that a random sample finds.
  std::optional<Sampling> sampling = {};

  /// In the order of their names.
  std::vector<const OperandDesc*> results() const;

  bool operator==(const FactorizationDesc&) const = default;
};

/// How an SVD is cut off and where its values go. These are no part of what is
/// planned.
///
/// Of the values of one matrix those are kept that are above `cutoff` and above
/// `relative_cutoff` times the largest, then as few as leave at most
/// `discarded_squares` and at most `relative_discarded_squares` of all squares
/// to the rest; at least one. A limit of 0 cuts nothing. Elements of the
/// results beyond are zero.
struct Truncation {
  enum class Absorb { kNone, kLeft, kRight, kBoth };  // both: roots
  static constexpr int kAbsorbCount = 4;

  double cutoff = 0;
  double relative_cutoff = 0;
  double discarded_squares = 0;
  double relative_discarded_squares = 0;
  Absorb absorb = Absorb::kNone;
  /// What is kept is scaled up to the norm of all.
  bool renormalizes = false;
  /// Says which numbers a random sample consists of.
  int64_t seed = 0;

  bool operator==(const Truncation&) const = default;
};

/// `rank` is the most values that are kept, if it is given.
///
/// Errors  INVALID_ARGUMENT, reason TRUNCATION_OUT_OF_RANGE: limits that are
///         negative or not finite, a rank below 1; TRUNCATION_WITHOUT_SVD: any,
///         of another method; VALUES_LOST: the values are neither a result nor
///         absorbed.
absl::Status Validate(const Truncation& truncation, FactorizationMethod method,
                      bool has_values, std::optional<int64_t> rank);

/// OK when a request has the results of its method.
/// Errors  INVALID_ARGUMENT, reason RESULT_COUNT_MISMATCH.
absl::Status ValidateResults(FactorizationMethod method, bool has_right,
                             bool has_values);

/// What the modes of a factorization stand for.
struct FactorizationModes {
  Modes batch;
  Modes rows;     // in left's order
  Modes columns;  // in right's order, or a's
  Mode inner;
  int64_t inner_extent;  // the most it can have: the shorter side's
};

/// Of results with those modes; null: not such a result.
///
/// Errors  INVALID_ARGUMENT: what Validate() says of modes; reason
///         MATRIX_TOO_LARGE: more rows or columns than int64 counts.
absl::StatusOr<FactorizationModes> GroupModes(FactorizationMethod method,
                                              const OperandDesc& a,
                                              const Modes& left,
                                              const Modes* right,
                                              const Modes* values);

/// Errors  INVALID_ARGUMENT: modes, extents or strides that do not fit; no
///         inner mode, or several; a matrix that is not square where it must
///         be; results that the method does not have, or lacks; an operator.
///         UNIMPLEMENTED: element types other than float32, float64, complex64
///         and complex128, or different ones.
absl::Status Validate(const FactorizationDesc& desc);

/// OK when the results have no room for more values than `rank`.
///
/// Requires  Validate(desc).ok().
/// Errors    INVALID_ARGUMENT, reason MODE_EXTENT_MISMATCH.
absl::Status ValidateRank(const FactorizationDesc& desc,
                          std::optional<int64_t> rank);

}  // namespace tensord::core
