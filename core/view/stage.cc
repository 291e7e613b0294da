#include "core/view/stage.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

/// Finds modes of one side of a stage that are not named exactly once.
class NamedModes {
 public:
  /// `side` is "lower" or "upper".
  NamedModes(const Stage& stage, int stage_number, absl::string_view side,
             size_t mode_count)
      : stage_(stage),
        stage_number_(stage_number),
        side_(side),
        named_by_(mode_count, -1) {}

  absl::Status Name(int mode, int transform) {
    const auto count = static_cast<int>(named_by_.size());
    if (mode < 0 || mode >= count) {
      return InvalidArgument("MODE_OUT_OF_RANGE",
                             NameOf(stage_number_, stage_, transform),
                             " names ", side_, " mode ", mode, ", but there ",
                             count == 1 ? "is " : "are ", count);
    }
    if (named_by_[mode] >= 0) {
      return InvalidArgument(
          "MODE_REPEATED", NameOf(stage_number_, stage_, transform), " names ",
          side_, " mode ", mode, ", which transform ", named_by_[mode], " (",
          NameOf(stage_.transforms[named_by_[mode]].transform),
          ") names already");
    }
    named_by_[mode] = transform;
    return absl::OkStatus();
  }

  absl::Status CheckComplete() const {
    const auto missing = std::ranges::find(named_by_, -1);
    if (missing == named_by_.end()) return absl::OkStatus();
    return InvalidArgument("MODE_MISSING", "stage ", stage_number_, ": ", side_,
                           " mode ", missing - named_by_.begin(),
                           " is named by no transform, wanted exactly one");
  }

 private:
  const Stage& stage_;
  int stage_number_;
  absl::string_view side_;
  std::vector<int> named_by_;  // (mode): a transform, or -1
};

absl::Status CheckLowerModes(const Stage& stage, size_t mode_count,
                             int stage_number) {
  NamedModes named(stage, stage_number, "lower", mode_count);
  for (size_t i = 0; i < stage.transforms.size(); ++i) {
    for (const int mode : stage.transforms[i].lower) {
      TENSORD_RETURN_IF_ERROR(named.Name(mode, static_cast<int>(i)));
    }
  }
  return named.CheckComplete();
}

absl::Status CheckElementCount(const ModeVector& extents, int stage_number) {
  int64_t count = 1;
  for (const int64_t extent : extents) {
    // An extent of 0 must not hide that the other extents overflow.
    const auto product = CheckedMultiply(count, std::max<int64_t>(extent, 1));
    if (!product) {
      return InvalidArgument("SIZE_OVERFLOW", "stage ", stage_number,
                             " makes extents ", ToString(extents),
                             ", more than 2^63 - 1 elements");
    }
    count = *product;
  }
  return absl::OkStatus();
}

}  // namespace

std::string NameOf(int stage_number, const Stage& stage, int transform_number) {
  return absl::StrCat(
      "stage ", stage_number, ", transform ", transform_number, " (",
      NameOf(stage.transforms[transform_number].transform), ")");
}

ModeVector At(const ModePositions& positions, const ModeVector& values) {
  ModeVector chosen;
  for (const int position : positions) chosen.push_back(values[position]);
  return chosen;
}

absl::StatusOr<ModeVector> UpperExtents(const Stage& stage,
                                        const ModeVector& lower_extents,
                                        int stage_number) {
  TENSORD_RETURN_IF_ERROR(
      CheckLowerModes(stage, lower_extents.size(), stage_number));
  std::vector<ModeVector> made;  // (transform)
  size_t mode_count = 0;
  for (size_t i = 0; i < stage.transforms.size(); ++i) {
    const PlacedTransform& placed = stage.transforms[i];
    const std::string where = NameOf(stage_number, stage, static_cast<int>(i));
    TENSORD_ASSIGN_OR_RETURN(
        ModeVector extents,
        UpperExtents(placed.transform, At(placed.lower, lower_extents), where));
    if (placed.upper.size() != extents.size()) {
      return InvalidArgument("MODE_COUNT_MISMATCH", where, ": names ",
                             placed.upper.size(), " upper modes, wanted ",
                             extents.size());
    }
    mode_count += extents.size();
    made.push_back(std::move(extents));
  }
  if (mode_count > kMaxModes) {
    return InvalidArgument("TOO_MANY_MODES", "stage ", stage_number, " makes ",
                           mode_count, " modes, wanted at most ", kMaxModes);
  }
  NamedModes named(stage, stage_number, "upper", mode_count);
  ModeVector upper_extents(mode_count);
  for (size_t i = 0; i < stage.transforms.size(); ++i) {
    const ModePositions& upper = stage.transforms[i].upper;
    for (size_t j = 0; j < upper.size(); ++j) {
      TENSORD_RETURN_IF_ERROR(named.Name(upper[j], static_cast<int>(i)));
      upper_extents[upper[j]] = made[i][j];
    }
  }
  // As many places as names, each named once: none is missing.
  TENSORD_RETURN_IF_ERROR(CheckElementCount(upper_extents, stage_number));
  return upper_extents;
}

}  // namespace tensord::core
