#include "core/ops/factorization.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

/// What users call the factors of a method; "": it has no such one.
struct FactorNames {
  absl::string_view left, right, values;
};

FactorNames FactorNamesOf(FactorizationMethod method) {
  switch (method) {
    case FactorizationMethod::kQr: return {"q", "r", ""};
    case FactorizationMethod::kLq: return {"l", "q", ""};
    case FactorizationMethod::kSvd: return {"u", "v", "s"};
    case FactorizationMethod::kEigh: return {"v", "", "w"};
    case FactorizationMethod::kCholesky: return {"l", "", ""};
  }
  __builtin_unreachable();
}

absl::Status ValidateType(const OperandDesc& factor, absl::string_view name,
                          ElementType wanted, ElementType of_a) {
  if (factor.element_type == wanted) return absl::OkStatus();
  if (wanted == of_a) {
    return Unimplemented("TYPES_NOT_SUPPORTED", name, " is ",
                         NameOf(factor.element_type), " but a is ",
                         NameOf(of_a), ", wanted the same element type");
  }
  return Unimplemented("TYPES_NOT_SUPPORTED", name, " is ",
                       NameOf(factor.element_type), ", wanted ", NameOf(wanted),
                       ", as it is real and a is ", NameOf(of_a));
}

absl::Status ValidateTypes(const FactorizationDesc& desc) {
  const ElementType type = desc.a.element_type;
  TENSORD_RETURN_IF_ERROR(ValidateMatrixType(desc.a));
  const FactorNames names = FactorNamesOf(desc.method);
  TENSORD_RETURN_IF_ERROR(ValidateType(desc.left, names.left, type, type));
  if (desc.right) {
    TENSORD_RETURN_IF_ERROR(ValidateType(*desc.right, names.right, type, type));
  }
  if (!desc.values) return absl::OkStatus();
  return ValidateType(*desc.values, names.values, RealPartOf(type), type);
}

absl::Status ValidateOperator(const OperandDesc& operand,
                              absl::string_view name) {
  if (operand.unary == UnaryOperator::kIdentity) return absl::OkStatus();
  return InvalidArgument("OPERATOR_IN_FACTORIZATION", name, " has operator ",
                         NameOf(operand.unary),
                         ", wanted none in a factorization");
}

absl::Status ValidateFactor(const OperandDesc& factor, absl::string_view name,
                            const OperandDesc& a) {
  TENSORD_RETURN_IF_ERROR(ValidateOperand(factor, name));
  TENSORD_RETURN_IF_ERROR(ValidateOperator(factor, name));
  TENSORD_RETURN_IF_ERROR(ValidateExtents(a, "a", factor, name));
  if (IsInjective(factor.layout)) return absl::OkStatus();
  return InvalidArgument("OUTPUT_OVERLAPS_ITSELF", name, " with extents ",
                         ToString(factor.layout.extents), " and strides ",
                         ToString(factor.layout.strides),
                         " has elements that share an address");
}

/// The modes, without what they add up to.
class Grouping {
 public:
  Grouping(FactorizationMethod method, const Modes& a, const Modes& left,
           const Modes* right, const Modes* values)
      : names_(FactorNamesOf(method)),
        a_(a),
        left_(left),
        right_(right),
        values_(values) {}

  absl::StatusOr<FactorizationModes> Group() {
    TENSORD_RETURN_IF_ERROR(right_ == nullptr ? PairColumns()
                                              : DivideByFactors());
    TENSORD_RETURN_IF_ERROR(FindInner());
    if (values_ != nullptr) TENSORD_RETURN_IF_ERROR(CheckValues());
    return std::move(modes_);
  }

 private:
  absl::Status DivideByFactors() {
    for (const Mode mode : a_) {
      if (Has(left_, mode) || Has(*right_, mode)) continue;
      return InvalidArgument("MODE_NOT_IN_OUTPUT", "mode ", ToString(mode),
                             " of a ", ToString(a_), " is in neither ",
                             names_.left, " ", ToString(left_), " nor ",
                             names_.right, " ", ToString(*right_));
    }
    for (const Mode mode : left_) {
      if (Has(a_, mode)) {
        (Has(*right_, mode) ? modes_.batch : modes_.rows).push_back(mode);
      } else if (!Has(*right_, mode)) {
        return NotInInput(mode, names_.left, left_, names_.right);
      }
    }
    for (const Mode mode : *right_) {
      if (Has(a_, mode)) {
        if (!Has(left_, mode)) modes_.columns.push_back(mode);
      } else if (!Has(left_, mode)) {
        return NotInInput(mode, names_.right, *right_, names_.left);
      }
    }
    return absl::OkStatus();
  }
  absl::Status PairColumns() {
    for (const Mode mode : a_) {
      if (!Has(left_, mode)) modes_.columns.push_back(mode);
    }
    for (const Mode mode : left_) {
      if (Has(a_, mode)) modes_.rows.push_back(mode);
    }
    if (modes_.rows.size() < modes_.columns.size()) {
      return InvalidArgument(
          "MATRIX_NOT_SQUARE", names_.left, " ", ToString(left_), " lacks ",
          modes_.columns.size(), " modes of a ", ToString(a_), " and has ",
          modes_.rows.size(), ", wanted one of a row for each of a column");
    }
    const auto first = modes_.rows.end() - modes_.columns.size();
    modes_.batch.assign(modes_.rows.begin(), first);
    modes_.rows.erase(modes_.rows.begin(), first);
    return absl::OkStatus();
  }
  absl::Status FindInner() {
    int inner_count = 0;
    for (const Mode mode : left_) {
      if (Has(a_, mode)) continue;
      modes_.inner = mode;
      ++inner_count;
    }
    if (inner_count == 1) return absl::OkStatus();
    if (right_ == nullptr) {
      return InvalidArgument("INNER_MODE_COUNT", names_.left, " ",
                             ToString(left_), " has ", inner_count,
                             " modes that a lacks, wanted one");
    }
    return InvalidArgument("INNER_MODE_COUNT", names_.left, " ",
                           ToString(left_), " and ", names_.right, " ",
                           ToString(*right_), " share ", inner_count,
                           " modes that a lacks, wanted one");
  }
  absl::Status CheckValues() const {
    const auto belongs = [this](Mode mode) {
      return mode == modes_.inner || Has(modes_.batch, mode);
    };
    if (values_->size() == modes_.batch.size() + 1 &&
        std::ranges::all_of(*values_, belongs)) {
      return absl::OkStatus();
    }
    return InvalidArgument(
        "MODES_OF_VALUES", names_.values, " ", ToString(*values_),
        " is wanted with the batch modes ", ToString(modes_.batch),
        " and the inner mode ", ToString(modes_.inner));
  }
  absl::Status NotInInput(Mode mode, absl::string_view name, const Modes& modes,
                          absl::string_view other) const {
    return InvalidArgument("MODE_NOT_IN_INPUT", "mode ", ToString(mode), " of ",
                           name, " ", ToString(modes), " is neither in a ",
                           ToString(a_), " nor in ", other, " ",
                           ToString(other == names_.left ? left_ : *right_));
  }

  const FactorNames names_;
  const Modes& a_;
  const Modes& left_;
  const Modes* const right_;
  const Modes* const values_;
  FactorizationModes modes_ = {};
};

absl::Status ValidateSquare(const OperandDesc& a,
                            const FactorizationModes& modes) {
  for (size_t i = 0; i < modes.rows.size(); ++i) {
    const auto extent = [&](Mode mode) {
      return a.layout.extents[PositionOf(mode, a.modes)];
    };
    if (extent(modes.rows[i]) == extent(modes.columns[i])) continue;
    return InvalidArgument("MATRIX_NOT_SQUARE", "mode ",
                           ToString(modes.rows[i]), " of rows has ", "extent ",
                           extent(modes.rows[i]), ", its mode ",
                           ToString(modes.columns[i]), " of columns ",
                           extent(modes.columns[i]), ", wanted equal ones");
  }
  return absl::OkStatus();
}

absl::Status ValidateInner(const FactorizationDesc& desc,
                           const FactorizationModes& modes) {
  const OperandDesc& left = desc.left;
  const int64_t extent =
      left.layout.extents[PositionOf(modes.inner, left.modes)];
  const bool may_be_less =
      desc.method == FactorizationMethod::kSvd && extent >= 1;
  if (extent == modes.inner_extent ||
      (may_be_less && extent < modes.inner_extent)) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "MODE_EXTENT_MISMATCH", "inner mode ", ToString(modes.inner),
      " has extent ", extent, ", wanted that of the matrix's shorter side, ",
      modes.inner_extent,
      desc.method == FactorizationMethod::kSvd ? ", or less, and at least 1"
                                               : "");
}

}  // namespace

absl::string_view NameOf(FactorizationMethod method) {
  switch (method) {
    case FactorizationMethod::kQr: return "qr";
    case FactorizationMethod::kLq: return "lq";
    case FactorizationMethod::kSvd: return "svd";
    case FactorizationMethod::kEigh: return "eigh";
    case FactorizationMethod::kCholesky: return "cholesky";
  }
  __builtin_unreachable();
}

absl::Span<const absl::string_view> ResultNamesOf(FactorizationMethod method,
                                                  bool has_values) {
  static constexpr absl::string_view kQr[] = {"q", "r"}, kLq[] = {"l", "q"},
                                     kSvd[] = {"u", "s", "v"},
                                     kAbsorbed[] = {"u", "v"},
                                     kEigh[] = {"w", "v"}, kCholesky[] = {"l"};
  switch (method) {
    case FactorizationMethod::kQr: return kQr;
    case FactorizationMethod::kLq: return kLq;
    case FactorizationMethod::kSvd:
      return has_values ? absl::MakeConstSpan(kSvd) : kAbsorbed;
    case FactorizationMethod::kEigh: return kEigh;
    case FactorizationMethod::kCholesky: return kCholesky;
  }
  __builtin_unreachable();
}

FactorPlaces PlacesOf(FactorizationMethod method, size_t result_count) {
  switch (method) {
    case FactorizationMethod::kQr:
    case FactorizationMethod::kLq: return {.right = 1};
    case FactorizationMethod::kSvd:
      if (result_count == 2) return {.right = 1};
      return {.right = 2, .values = 1};
    case FactorizationMethod::kEigh: return {.left = 1, .values = 0};
    case FactorizationMethod::kCholesky: return {};
  }
  __builtin_unreachable();
}

std::vector<const OperandDesc*> FactorizationDesc::results() const {
  std::vector<const OperandDesc*> all = {&left};
  if (values && right) all.push_back(&*values);
  if (right) all.push_back(&*right);
  if (values && !right) all.insert(all.begin(), &*values);
  return all;
}

absl::Status Validate(const Truncation& truncation, FactorizationMethod method,
                      bool has_values, std::optional<int64_t> rank) {
  if (method != FactorizationMethod::kSvd) {
    if (truncation == Truncation() && !rank) return absl::OkStatus();
    return InvalidArgument("TRUNCATION_WITHOUT_SVD",
                           rank ? "a rank" : "a truncation", " is given, ",
                           NameOf(method), " has none");
  }
  const std::pair<absl::string_view, double> limits[] = {
      {"cutoff", truncation.cutoff},
      {"relative_cutoff", truncation.relative_cutoff},
      {"discarded_squares", truncation.discarded_squares},
      {"relative_discarded_squares", truncation.relative_discarded_squares}};
  for (const auto& [name, limit] : limits) {
    if (std::isfinite(limit) && limit >= 0) continue;
    return InvalidArgument("TRUNCATION_OUT_OF_RANGE", name, " is ", limit,
                           ", wanted a finite number, 0 or more");
  }
  if (rank && *rank < 1) {
    return InvalidArgument("TRUNCATION_OUT_OF_RANGE", "rank is ", *rank,
                           ", wanted 1 or more");
  }
  if (has_values || truncation.absorb != Truncation::Absorb::kNone) {
    return absl::OkStatus();
  }
  return InvalidArgument("VALUES_LOST",
                         "s is no result and neither u nor v absorbs it, "
                         "wanted one of both");
}

absl::Status Validate(const Sampling& sampling, FactorizationMethod method,
                      std::optional<int64_t> rank) {
  if (method != FactorizationMethod::kSvd) {
    return InvalidArgument("SAMPLING_WITHOUT_SVD",
                           "a random sample is wanted, ", NameOf(method),
                           " takes none");
  }
  if (!rank) {
    return InvalidArgument("SAMPLING_WITHOUT_RANK",
                           "a random sample is wanted without a rank, wanted "
                           "how many values are kept");
  }
  constexpr int64_t kMostColumns = 1'000'000, kMostIterations = 100;
  const std::tuple<absl::string_view, int64_t, int64_t> numbers[] = {
      {"oversampling", sampling.oversampling, kMostColumns},
      {"power_iterations", sampling.power_iterations, kMostIterations}};
  for (const auto& [name, number, most] : numbers) {
    if (number >= 0 && number <= most) continue;
    return InvalidArgument("SAMPLING_OUT_OF_RANGE", name, " is ", number,
                           ", wanted 0 to ", most);
  }
  return absl::OkStatus();
}

absl::Status ValidateResults(FactorizationMethod method, bool has_right,
                             bool has_values) {
  const FactorNames names = FactorNamesOf(method);
  const bool may_lack_values = method == FactorizationMethod::kSvd;
  const bool wants_values = !names.values.empty();
  if (has_right == !names.right.empty() &&
      (has_values == wants_values || (may_lack_values && !has_values))) {
    return absl::OkStatus();
  }
  std::string wanted;
  for (const absl::string_view name : ResultNamesOf(method, wants_values)) {
    absl::StrAppend(&wanted, wanted.empty() ? "" : " and ", name);
  }
  return InvalidArgument("RESULT_COUNT_MISMATCH", NameOf(method), " has ",
                         wanted, ", wanted a place for each and for no other");
}

absl::StatusOr<FactorizationModes> GroupModes(FactorizationMethod method,
                                              const OperandDesc& a,
                                              const Modes& left,
                                              const Modes* right,
                                              const Modes* values) {
  TENSORD_RETURN_IF_ERROR(
      ValidateResults(method, right != nullptr, values != nullptr));
  TENSORD_ASSIGN_OR_RETURN(
      FactorizationModes modes,
      Grouping(method, a.modes, left, right, values).Group());
  const std::optional<int64_t> rows = ElementsAlong(a, modes.rows);
  const std::optional<int64_t> columns = ElementsAlong(a, modes.columns);
  if (!rows || !columns) {
    return InvalidArgument("MATRIX_TOO_LARGE", "a with extents ",
                           ToString(a.layout.extents),
                           " has more rows or columns than int64 counts");
  }
  if (right == nullptr) TENSORD_RETURN_IF_ERROR(ValidateSquare(a, modes));
  modes.inner_extent = std::min(*rows, *columns);
  return modes;
}

absl::Status Validate(const FactorizationDesc& desc) {
  TENSORD_RETURN_IF_ERROR(ValidateOperand(desc.a, "a"));
  TENSORD_RETURN_IF_ERROR(ValidateOperator(desc.a, "a"));
  const FactorNames names = FactorNamesOf(desc.method);
  TENSORD_ASSIGN_OR_RETURN(
      const FactorizationModes modes,
      GroupModes(desc.method, desc.a, desc.left.modes,
                 desc.right ? &desc.right->modes : nullptr,
                 desc.values ? &desc.values->modes : nullptr));
  TENSORD_RETURN_IF_ERROR(ValidateFactor(desc.left, names.left, desc.a));
  if (desc.right) {
    TENSORD_RETURN_IF_ERROR(ValidateFactor(*desc.right, names.right, desc.a));
    TENSORD_RETURN_IF_ERROR(
        ValidateExtents(desc.left, names.left, *desc.right, names.right));
  }
  if (desc.values) {
    TENSORD_RETURN_IF_ERROR(ValidateFactor(*desc.values, names.values, desc.a));
    TENSORD_RETURN_IF_ERROR(
        ValidateExtents(desc.left, names.left, *desc.values, names.values));
  }
  TENSORD_RETURN_IF_ERROR(ValidateInner(desc, modes));
  return ValidateTypes(desc);
}

absl::Status ValidateRank(const FactorizationDesc& desc,
                          std::optional<int64_t> rank) {
  const auto inner = std::ranges::find_if(
      desc.left.modes, [&](Mode mode) { return !Has(desc.a.modes, mode); });
  const int64_t extent =
      desc.left.layout.extents[inner - desc.left.modes.begin()];
  if (!rank || extent <= *rank) return absl::OkStatus();
  return InvalidArgument("MODE_EXTENT_MISMATCH", "inner mode ",
                         ToString(*inner), " of existing results has extent ",
                         extent, ", the rank is ", *rank,
                         ", wanted results that are no longer");
}

}  // namespace tensord::core
