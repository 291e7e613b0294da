#include "core/view/transform.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "core/base/checked_math.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

using Extents = absl::Span<const int64_t>;

std::string Listed(Extents extents) {
  return ToString(ModeVector(extents.begin(), extents.end()));
}

/// Product of the extents; nothing when it overflows, even if an extent of 0
/// hides it.
std::optional<int64_t> CountOf(Extents extents) {
  std::optional<int64_t> count = 1;
  bool is_empty = false;
  for (const int64_t extent : extents) {
    is_empty = is_empty || extent == 0;
    count = CheckedMultiply(*count, std::max<int64_t>(extent, 1));
    if (!count) return std::nullopt;
  }
  return is_empty ? 0 : count;
}

/// Says of one transform what the upper extents are, or why there are none.
class UpperExtentsOf {
 public:
  UpperExtentsOf(Extents lower, absl::string_view where)
      : lower_(lower), where_(where) {}

  absl::StatusOr<ModeVector> operator()(const transform::PassThrough&) const {
    TENSORD_RETURN_IF_ERROR(CheckLowerCount(1));
    return ModeVector{lower_[0]};
  }

  absl::StatusOr<ModeVector> operator()(const transform::Merge&) const {
    const auto count = CountOf(lower_);
    if (!count) {
      return Refuse("SIZE_OVERFLOW", "extents ", Listed(lower_),
                    " have a product beyond 2^63 - 1");
    }
    return ModeVector{*count};
  }

  absl::StatusOr<ModeVector> operator()(
      const transform::Unmerge& unmerge) const {
    TENSORD_RETURN_IF_ERROR(CheckLowerCount(1));
    TENSORD_RETURN_IF_ERROR(CheckExtents(unmerge.extents));
    if (CountOf(unmerge.extents) != lower_[0]) {
      return Refuse("EXTENT_PRODUCT_MISMATCH", "extents ",
                    Listed(unmerge.extents),
                    " do not multiply to the lower extent ", lower_[0]);
    }
    return unmerge.extents;
  }

  absl::StatusOr<ModeVector> operator()(const transform::Slice& slice) const {
    TENSORD_RETURN_IF_ERROR(CheckLowerCount(1));
    if (slice.step == 0) {
      return Refuse("SLICE_STEP_ZERO", "step is 0, wanted any other number");
    }
    const bool is_empty =
        slice.step > 0 ? slice.start >= slice.stop : slice.start <= slice.stop;
    if (is_empty) return ModeVector{0};
    if (slice.start < 0 || slice.start >= lower_[0] || slice.stop < -1 ||
        slice.stop > lower_[0]) {
      return Refuse("SLICE_OUT_OF_RANGE", "[", slice.start, ", ", slice.stop,
                    ") by ", slice.step, " leaves the lower extent ",
                    lower_[0]);
    }
    return ModeVector{SelectedCount(slice)};
  }

  absl::StatusOr<ModeVector> operator()(const transform::Pad& pad) const {
    TENSORD_RETURN_IF_ERROR(CheckLowerCount(1));
    if (pad.before < 0 || pad.after < 0) {
      return Refuse("NEGATIVE_PADDING", "padding is ", pad.before,
                    " before and ", pad.after, " after, wanted >= 0");
    }
    const auto padding = CheckedAdd(pad.before, pad.after);
    const auto extent =
        padding ? CheckedAdd(*padding, lower_[0]) : std::nullopt;
    if (!extent) {
      return Refuse("SIZE_OVERFLOW", "padding of ", pad.before, " and ",
                    pad.after, " around extent ", lower_[0],
                    " makes an extent beyond 2^63 - 1");
    }
    return ModeVector{*extent};
  }

  absl::StatusOr<ModeVector> operator()(const transform::Freeze& freeze) const {
    TENSORD_RETURN_IF_ERROR(CheckLowerCount(1));
    TENSORD_RETURN_IF_ERROR(CheckReach(freeze.index, freeze.index));
    return absl::StatusOr<ModeVector>(absl::in_place);
  }

  absl::StatusOr<ModeVector> operator()(const transform::Insert& insert) const {
    TENSORD_RETURN_IF_ERROR(CheckLowerCount(0));
    TENSORD_RETURN_IF_ERROR(CheckExtents({insert.extent}));
    return ModeVector{insert.extent};
  }

  absl::StatusOr<ModeVector> operator()(
      const transform::Replicate& replicate) const {
    TENSORD_RETURN_IF_ERROR(CheckLowerCount(0));
    TENSORD_RETURN_IF_ERROR(CheckExtents(replicate.extents));
    return replicate.extents;
  }

  absl::StatusOr<ModeVector> operator()(const transform::Embed& embed) const {
    TENSORD_RETURN_IF_ERROR(CheckLowerCount(1));
    TENSORD_RETURN_IF_ERROR(CheckExtents(embed.extents));
    if (embed.coefficients.size() != embed.extents.size()) {
      return Refuse("COEFFICIENT_COUNT_MISMATCH", embed.extents.size(),
                    " extents but ", embed.coefficients.size(),
                    " coefficients");
    }
    if (std::ranges::count(embed.extents, 0) > 0) return embed.extents;
    std::optional<int64_t> lowest = embed.constant;
    std::optional<int64_t> highest = embed.constant;
    for (size_t i = 0; i < embed.extents.size(); ++i) {
      const auto reach =
          CheckedMultiply(embed.coefficients[i], embed.extents[i] - 1);
      auto& bound = embed.coefficients[i] < 0 ? lowest : highest;
      bound = bound && reach ? CheckedAdd(*bound, *reach) : std::nullopt;
    }
    if (!lowest || !highest) {
      return Refuse("SIZE_OVERFLOW", "extents ", Listed(embed.extents),
                    " by coefficients ", Listed(embed.coefficients),
                    " reach beyond 2^63 - 1");
    }
    TENSORD_RETURN_IF_ERROR(CheckReach(*lowest, *highest));
    return embed.extents;
  }

  absl::StatusOr<ModeVector> operator()(const transform::Modulo& modulo) const {
    TENSORD_RETURN_IF_ERROR(CheckLowerCount(1));
    TENSORD_RETURN_IF_ERROR(CheckExtents({modulo.extent}));
    if (modulo.modulus < 1) {
      return Refuse("MODULUS_NOT_POSITIVE", "modulus is ", modulo.modulus,
                    ", wanted >= 1");
    }
    if (modulo.extent > 0) {
      TENSORD_RETURN_IF_ERROR(
          CheckReach(0, std::min(modulo.modulus, modulo.extent) - 1));
    }
    return ModeVector{modulo.extent};
  }

  absl::StatusOr<ModeVector> operator()(const transform::Xor&) const {
    TENSORD_RETURN_IF_ERROR(CheckLowerCount(2));
    if (lower_[1] != 0 &&
        !std::has_single_bit(static_cast<uint64_t>(lower_[1]))) {
      return Refuse("EXTENT_NOT_POWER_OF_TWO", "the second lower extent is ",
                    lower_[1], ", wanted a power of two, or indices leave it");
    }
    return ModeVector{lower_[0], lower_[1]};
  }

  absl::StatusOr<ModeVector> operator()(const transform::Offset& offset) const {
    TENSORD_RETURN_IF_ERROR(CheckLowerCount(1));
    TENSORD_RETURN_IF_ERROR(CheckExtents({offset.extent}));
    if (offset.extent > 0) {
      const auto highest = CheckedAdd(offset.offset, offset.extent - 1);
      if (!highest) {
        return Refuse("SIZE_OVERFLOW", "offset ", offset.offset, " and extent ",
                      offset.extent, " reach beyond 2^63 - 1");
      }
      TENSORD_RETURN_IF_ERROR(CheckReach(offset.offset, *highest));
    }
    return ModeVector{offset.extent};
  }

  absl::StatusOr<ModeVector> operator()(const transform::Diagonal&) const {
    if (lower_.empty()) {
      return Refuse("MODE_COUNT_MISMATCH",
                    "names no lower mode, wanted at least 1");
    }
    for (const int64_t extent : lower_) {
      if (extent != lower_[0]) {
        return Refuse("MODE_EXTENT_MISMATCH", "lower extents are ",
                      Listed(lower_), ", wanted equal ones");
      }
    }
    return ModeVector{lower_[0]};
  }

 private:
  template <typename... Parts>
  absl::Status Refuse(absl::string_view reason, const Parts&... parts) const {
    return InvalidArgument(reason, where_, ": ", parts...);
  }

  absl::Status CheckLowerCount(size_t wanted) const {
    if (lower_.size() == wanted) return absl::OkStatus();
    return Refuse("MODE_COUNT_MISMATCH", "names ", lower_.size(),
                  " lower modes, wanted ", wanted);
  }

  absl::Status CheckExtents(Extents extents) const {
    if (std::ranges::all_of(extents, [](int64_t x) { return x >= 0; })) {
      return absl::OkStatus();
    }
    return Refuse("NEGATIVE_EXTENT", "extents are ", Listed(extents),
                  ", wanted >= 0");
  }

  /// Requires exactly one lower mode.
  absl::Status CheckReach(int64_t lowest, int64_t highest) const {
    if (lowest >= 0 && highest < lower_[0]) return absl::OkStatus();
    return lowest == highest
               ? Refuse("INDEX_OUT_OF_RANGE", "index ", lowest,
                        " leaves the lower extent ", lower_[0])
               : Refuse("INDEX_OUT_OF_RANGE", "indices ", lowest, " to ",
                        highest, " leave the lower extent ", lower_[0]);
  }

  Extents lower_;
  absl::string_view where_;
};

/// True when every step exceeds the reach of all smaller ones.
bool Nests(const transform::Embed& embed) {
  absl::InlinedVector<std::pair<int64_t, int64_t>, 8> steps;
  for (size_t i = 0; i < embed.extents.size(); ++i) {
    if (embed.extents[i] == 0) return true;
    if (embed.extents[i] > 1) {
      const int64_t coefficient = embed.coefficients[i];
      steps.emplace_back(coefficient < 0 ? -coefficient : coefficient,
                         embed.extents[i]);
    }
  }
  std::ranges::sort(steps);
  int64_t span = 1;
  for (const auto& [step, extent] : steps) {
    if (step < span) return false;
    span += step * (extent - 1);
  }
  return true;
}

}  // namespace

absl::string_view NameOf(const Transform& transform) {
  constexpr absl::string_view kNames[] = {
      "pass_through", "merge",  "unmerge",   "slice", "pad",
      "freeze",       "insert", "replicate", "embed", "modulo",
      "xor",          "offset", "diagonal"};
  static_assert(std::size(kNames) == std::variant_size_v<Transform>);
  return kNames[transform.index()];
}

int64_t SelectedCount(const transform::Slice& slice) {
  if (slice.step > 0) {
    if (slice.start >= slice.stop) return 0;
    return (slice.stop - slice.start - 1) / slice.step + 1;
  }
  if (slice.start <= slice.stop) return 0;
  return (slice.stop - slice.start + 1) / slice.step + 1;
}

absl::StatusOr<ModeVector> UpperExtents(const Transform& transform,
                                        absl::Span<const int64_t> lower_extents,
                                        absl::string_view where) {
  return std::visit(UpperExtentsOf(lower_extents, where), transform);
}

bool IsInjective(const Transform& transform) {
  if (const auto* insert = std::get_if<transform::Insert>(&transform)) {
    return insert->extent <= 1;
  }
  if (const auto* many = std::get_if<transform::Replicate>(&transform)) {
    const auto count = CountOf(many->extents);
    return count && *count <= 1;
  }
  if (const auto* modulo = std::get_if<transform::Modulo>(&transform)) {
    return modulo->extent <= modulo->modulus;
  }
  if (const auto* embed = std::get_if<transform::Embed>(&transform)) {
    return Nests(*embed);
  }
  return true;
}

}  // namespace tensord::core
