#include "core/view/indexing.h"

#include <algorithm>
#include <utility>

#include "core/base/status.h"

namespace tensord::core {
namespace {

/// The slice whose numbers count from the start, within the extent.
transform::Slice Within(const SliceItem& item, int64_t step, int64_t extent) {
  const int64_t first = step > 0 ? 0 : -1;
  const int64_t last = step > 0 ? extent : extent - 1;
  const auto limited = [&](int64_t x) {
    return std::clamp(x < 0 ? x + extent : x, first, last);
  };
  const int64_t start =
      item.start ? limited(*item.start) : (step > 0 ? first : last);
  const int64_t stop =
      item.stop ? limited(*item.stop) : (step > 0 ? last : first);
  return {start, stop, step};
}

/// Makes a stage item by item.
class StageBuilder {
 public:
  explicit StageBuilder(const ModeVector& extents) : extents_(extents) {}

  absl::Status Add(size_t position, const IndexItem& item) {
    if (std::holds_alternative<NewModeItem>(item)) {
      stage_.transforms.push_back({transform::Insert{1}, {}, {upper_++}});
      return absl::OkStatus();
    }
    const int64_t extent = extents_[lower_];
    if (const int64_t* const index = std::get_if<int64_t>(&item)) {
      const int64_t from_start = *index < 0 ? *index + extent : *index;
      if (from_start < 0 || from_start >= extent) {
        return InvalidArgument("INDEX_OUT_OF_RANGE", "index ", *index,
                               " at position ", position, " is outside mode ",
                               lower_, " of extent ", extent);
      }
      stage_.transforms.push_back(
          {transform::Freeze{from_start}, {lower_++}, {}});
      return absl::OkStatus();
    }
    if (const SliceItem* const slice = std::get_if<SliceItem>(&item)) {
      const int64_t step = slice->step.value_or(1);
      if (step == 0) {
        return InvalidArgument("SLICE_STEP_ZERO", "the slice at position ",
                               position, " has step 0, wanted any other");
      }
      Place(Within(*slice, step, extent));
      return absl::OkStatus();
    }
    Place(transform::PassThrough{});
    return absl::OkStatus();
  }

  void TakeWhole(size_t mode_count) {
    for (size_t i = 0; i < mode_count; ++i) Place(transform::PassThrough{});
  }

  Stage Build() && { return std::move(stage_); }

 private:
  void Place(Transform transform) {
    stage_.transforms.push_back({std::move(transform), {lower_++}, {upper_++}});
  }

  const ModeVector& extents_;
  Stage stage_;
  int lower_ = 0;  // next mode on either side
  int upper_ = 0;
};

}  // namespace

absl::StatusOr<Stage> IndexStage(absl::Span<const IndexItem> items,
                                 const ModeVector& extents) {
  const auto is_ellipsis = [](const IndexItem& item) {
    return std::holds_alternative<EllipsisItem>(item);
  };
  const size_t named = std::ranges::count_if(items, [&](const IndexItem& item) {
    return !is_ellipsis(item) && !std::holds_alternative<NewModeItem>(item);
  });
  if (named > extents.size()) {
    return InvalidArgument("TOO_MANY_INDICES", named, " indices for ",
                           extents.size(), " modes, wanted at most as many");
  }
  const size_t unnamed = extents.size() - named;
  StageBuilder builder(extents);
  bool has_ellipsis = false;
  for (size_t position = 0; position < items.size(); ++position) {
    if (!is_ellipsis(items[position])) {
      TENSORD_RETURN_IF_ERROR(builder.Add(position, items[position]));
      continue;
    }
    if (has_ellipsis) {
      return InvalidArgument("ELLIPSIS_REPEATED", "position ", position,
                             " holds a second ellipsis, wanted at most one");
    }
    has_ellipsis = true;
    builder.TakeWhole(unnamed);
  }
  if (!has_ellipsis) builder.TakeWhole(unnamed);
  return std::move(builder).Build();
}

}  // namespace tensord::core
