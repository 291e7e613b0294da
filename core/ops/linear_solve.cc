#include "core/ops/linear_solve.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

/// Where operators are, in messages.
absl::string_view PlaceOf(MatrixFunction function) {
  return function == MatrixFunction::kExponential
             ? "in an exponential"
             : "where equations are solved";
}

/// "1 mode", "2 modes"
std::string CountOf(size_t modes) {
  return absl::StrCat(modes, modes == 1 ? " mode" : " modes");
}

int64_t ExtentOf(const OperandDesc& operand, Mode mode) {
  return operand.layout.extents[PositionOf(mode, operand.modes)];
}

absl::Status ValidateAlike(const OperandDesc& operand, absl::string_view name,
                           ElementType of_a) {
  if (operand.element_type == of_a) return absl::OkStatus();
  return Unimplemented("TYPES_NOT_SUPPORTED", name, " is ",
                       NameOf(operand.element_type), " but a is ", NameOf(of_a),
                       ", wanted the same element type");
}

absl::StatusOr<LinearSolveModes> GroupEquations(const Modes& a, const Modes& b,
                                                const Modes& d) {
  const auto is_alone = [&](Mode mode, absl::string_view name,
                            const Modes& modes, absl::string_view others) {
    return InvalidArgument(
        "MODE_NOT_IN_OUTPUT", "mode ", ToString(mode), " of ", name, " ",
        ToString(modes), " is neither in ", others, " nor in d ", ToString(d));
  };
  LinearSolveModes modes;
  for (const Mode mode : a) {
    if (!Has(b, mode) && !Has(d, mode)) return is_alone(mode, "a", a, "b");
  }
  for (const Mode mode : b) {
    if (Has(a, mode)) {
      (Has(d, mode) ? modes.batch : modes.rows).push_back(mode);
    } else if (!Has(d, mode)) {
      return is_alone(mode, "b", b, "a");
    }
  }
  for (const Mode mode : d) {
    if (!Has(a, mode) && !Has(b, mode)) {
      return InvalidArgument("MODE_NOT_IN_INPUT", "mode ", ToString(mode),
                             " of d is in neither a ", ToString(a), " nor b ",
                             ToString(b));
    }
    if (!Has(b, mode)) modes.columns.push_back(mode);
    if (!Has(a, mode)) modes.sides.push_back(mode);
  }
  return modes;
}

/// Moves the first modes of `from`, all but the last `count`, to `to`.
void TakeFirst(Modes& from, size_t count, Modes& to) {
  const auto first = from.end() - static_cast<std::ptrdiff_t>(count);
  to.assign(from.begin(), first);
  from.erase(from.begin(), first);
}

absl::StatusOr<LinearSolveModes> GroupInverse(const Modes& a, const Modes& d) {
  LinearSolveModes modes;
  for (const Mode mode : a) {
    if (!Has(d, mode)) modes.rows.push_back(mode);
  }
  for (const Mode mode : d) {
    (Has(a, mode) ? modes.columns : modes.sides).push_back(mode);
  }
  const size_t count = modes.rows.size();
  if (count == 0) {
    return InvalidArgument("MODES_OF_INVERSE", "d ", ToString(d),
                           " has all modes of a ", ToString(a),
                           ", wanted others in place of those of its rows, as "
                           "in ij->jk");
  }
  if (modes.sides.size() != count || modes.columns.size() < count) {
    return InvalidArgument(
        "MODES_OF_INVERSE", "d ", ToString(d), " lacks ", CountOf(count),
        " of a ", ToString(a), ", has ", modes.columns.size(), " of them and ",
        modes.sides.size(),
        " others, wanted one that a has and another for each that d lacks");
  }
  const bool is_in_order =
      std::ranges::equal(modes.sides, absl::MakeConstSpan(d).last(count));
  if (modes.columns.size() > count && !is_in_order) {
    return InvalidArgument(
        "MODES_OF_INVERSE", "d ", ToString(d), " has ",
        modes.columns.size() - count, " batch modes of a ", ToString(a),
        ", wanted these first, then modes of columns, its own last, as in "
        "nij->njk");
  }
  TakeFirst(modes.columns, count, modes.batch);
  modes.sides_in_a = modes.rows;
  return modes;
}

absl::StatusOr<LinearSolveModes> GroupExponential(const Modes& a,
                                                  const Modes& d) {
  if (a.size() < 2) {
    return InvalidArgument("MODES_OF_EXPONENTIAL", "a ", ToString(a), " has ",
                           CountOf(a.size()),
                           ", wanted those of rows and of columns");
  }
  LinearSolveModes modes;
  const bool has_both = a.size() == 2 && d.size() == 2 && Has(d, a[0]) &&
                        Has(d, a[1]);  // as in ij->ij
  for (const Mode mode : a) {
    const bool is_column = has_both ? mode == a[1] : !Has(d, mode);
    (is_column ? modes.columns : modes.rows).push_back(mode);
  }
  for (const Mode mode : d) {
    if (has_both ? mode == a[1] : !Has(a, mode)) modes.sides.push_back(mode);
  }
  const size_t count = modes.columns.size();
  if (count == 0) {
    return InvalidArgument("MODES_OF_EXPONENTIAL", "d ", ToString(d),
                           " has all modes of a ", ToString(a),
                           ", wanted others in place of those of its columns, "
                           "as in nij->nik");
  }
  if (modes.sides.size() != count || modes.rows.size() < count) {
    return InvalidArgument(
        "MODES_OF_EXPONENTIAL", "d ", ToString(d), " lacks ", CountOf(count),
        " of a ", ToString(a), ", has ", modes.rows.size(), " of them and ",
        modes.sides.size(),
        " others, wanted one that a has and another for each that d lacks");
  }
  TakeFirst(modes.rows, count, modes.batch);
  modes.sides_in_a = modes.columns;
  return modes;
}

/// Without b, d is as long along its own modes as a along those that they stand
/// for.
absl::Status ValidateSides(const OperandDesc& a, const OperandDesc& d,
                           const LinearSolveModes& modes) {
  for (size_t i = 0; i < modes.sides.size(); ++i) {
    const int64_t wanted = ExtentOf(a, modes.sides_in_a[i]);
    const int64_t extent = ExtentOf(d, modes.sides[i]);
    if (extent == wanted) continue;
    return InvalidArgument("MODE_EXTENT_MISMATCH", "mode ",
                           ToString(modes.sides[i]), " of d has extent ",
                           extent, ", wanted that of mode ",
                           ToString(modes.sides_in_a[i]), " of a, ", wanted);
  }
  return absl::OkStatus();
}

/// The rows of each pair of modes are as long as its columns: their numbers
/// count the same then.
absl::Status ValidatePairs(const OperandDesc& a,
                           const LinearSolveModes& modes) {
  for (size_t i = 0; i < modes.rows.size(); ++i) {
    const int64_t rows = ExtentOf(a, modes.rows[i]);
    const int64_t columns = ExtentOf(a, modes.columns[i]);
    if (rows == columns) continue;
    return InvalidArgument("MATRIX_NOT_SQUARE", "mode ",
                           ToString(modes.rows[i]), " of rows has extent ",
                           rows, ", its mode ", ToString(modes.columns[i]),
                           " of columns ", columns, ", wanted equal ones");
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view NameOf(MatrixStructure structure) {
  switch (structure) {
    case MatrixStructure::kGeneral: return "general";
    case MatrixStructure::kLowerTriangular: return "lower_triangular";
    case MatrixStructure::kUpperTriangular: return "upper_triangular";
    case MatrixStructure::kHermitian: return "hermitian";
    case MatrixStructure::kPositiveDefinite: return "positive_definite";
  }
  __builtin_unreachable();
}

absl::string_view NameOf(MatrixFunction function) {
  return function == MatrixFunction::kInverse ? "inverse" : "exponential";
}

absl::StatusOr<LinearSolveModes> GroupModes(MatrixFunction function,
                                            const OperandDesc& a,
                                            const OperandDesc* b,
                                            const Modes& d) {
  for (const Mode mode : d) {
    if (std::ranges::count(d, mode) == 1) continue;
    return InvalidArgument("MODE_REPEATED", "mode ", ToString(mode),
                           " occurs twice in d ", ToString(d),
                           ", wanted each mode once");
  }
  const bool is_exponential = function == MatrixFunction::kExponential;
  if (is_exponential && b != nullptr) {
    return InvalidArgument("RIGHT_SIDE_UNWANTED",
                           "b is given, wanted a alone of an exponential");
  }
  TENSORD_ASSIGN_OR_RETURN(LinearSolveModes modes,
                           is_exponential ? GroupExponential(a.modes, d)
                           : b == nullptr
                               ? GroupInverse(a.modes, d)
                               : GroupEquations(a.modes, b->modes, d));
  const std::optional<int64_t> rows = ElementsAlong(a, modes.rows);
  const std::optional<int64_t> columns = ElementsAlong(a, modes.columns);
  if (!rows || !columns) {
    return InvalidArgument("MATRIX_TOO_LARGE", "a with extents ",
                           ToString(a.layout.extents),
                           " has more rows or columns than int64 counts");
  }
  if (*rows != *columns) {
    return InvalidArgument("MATRIX_NOT_SQUARE", "a has ", *rows,
                           " rows, along ", ToString(modes.rows), ", and ",
                           *columns, " columns, along ",
                           ToString(modes.columns), ", wanted as many");
  }
  if (is_exponential) TENSORD_RETURN_IF_ERROR(ValidatePairs(a, modes));
  return modes;
}

absl::Status Validate(const LinearSolveDesc& desc) {
  const OperandDesc& a = desc.a;
  const OperandDesc* const b = desc.b ? &*desc.b : nullptr;
  const absl::string_view place = PlaceOf(desc.function);
  TENSORD_RETURN_IF_ERROR(ValidateLinear(a, "a", place));
  if (b != nullptr) TENSORD_RETURN_IF_ERROR(ValidateLinear(*b, "b", place));
  TENSORD_RETURN_IF_ERROR(ValidateOperand(desc.d, "d"));
  TENSORD_RETURN_IF_ERROR(ValidateOutput(desc.d));
  TENSORD_ASSIGN_OR_RETURN(const LinearSolveModes modes,
                           GroupModes(desc.function, a, b, desc.d.modes));
  TENSORD_RETURN_IF_ERROR(ValidateExtents(a, "a", desc.d, "d"));
  if (b == nullptr) {
    TENSORD_RETURN_IF_ERROR(ValidateSides(a, desc.d, modes));
  } else {
    TENSORD_RETURN_IF_ERROR(ValidateExtents(a, "a", *b, "b"));
    TENSORD_RETURN_IF_ERROR(ValidateExtents(*b, "b", desc.d, "d"));
  }
  if (desc.has_unit_diagonal && !IsTriangular(desc.structure)) {
    return InvalidArgument(
        "UNIT_DIAGONAL_WITHOUT_TRIANGLE", "a unit diagonal is wanted of a ",
        NameOf(desc.structure), " matrix, wanted one of a triangle");
  }
  const ElementType type = a.element_type;
  TENSORD_RETURN_IF_ERROR(ValidateMatrixType(a));
  if (b != nullptr) TENSORD_RETURN_IF_ERROR(ValidateAlike(*b, "b", type));
  return ValidateAlike(desc.d, "d", type);
}

}  // namespace tensord::core
