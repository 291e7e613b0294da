// What sums of indices are by value, found by trying few coordinates.
#include <algorithm>
#include <utility>

#include "core/view/index_domain.h"

namespace tensord::core {
namespace {

/// Most coordinates that are tried one by one.
constexpr int64_t kFewCoordinates = 1024;
/// What values are tried: their differences fit int64.
constexpr IndexRange kModerate{-(int64_t{1} << 61), int64_t{1} << 61};

/// The coordinates of some modes, one after another; the others stay 0.
class Coordinates {
 public:
  /// All that `part` depends on; nothing when they, or its values, are large.
  static std::optional<Coordinates> Of(const IndexSum& part,
                                       const ModeVector& extents) {
    const auto bounds = BoundsOf(part);
    if (!bounds || !kModerate.Contains(*bounds)) return std::nullopt;
    Coordinates coordinates(extents);
    const uint64_t bits = ModesOf(part);
    int64_t count = 1;
    for (size_t mode = 0; mode < extents.size(); ++mode) {
      if ((bits >> mode & 1) == 0) continue;
      coordinates.modes_.push_back(mode);
      if (extents[mode] > kFewCoordinates) return std::nullopt;
      count *= extents[mode];
      if (count > kFewCoordinates) return std::nullopt;
    }
    return coordinates;
  }

  absl::Span<const int64_t> indices() const { return indices_; }
  const std::vector<size_t>& modes() const { return modes_; }

  /// Goes on to the next; false, and back at the first, after the last.
  bool Advance() {
    for (const size_t mode : modes_) {
      if (++indices_[mode] < extents_[mode]) return true;
      indices_[mode] = 0;
    }
    return false;
  }

 private:
  explicit Coordinates(const ModeVector& extents)
      : extents_(extents), indices_(extents.size(), 0) {}

  ModeVector extents_;
  ModeVector indices_;
  std::vector<size_t> modes_;
};

}  // namespace

std::optional<IndexSum> IndexDomain::AffineByValue(const IndexSum& part) {
  auto coordinates = Coordinates::Of(part, extents_);
  if (!coordinates) return std::nullopt;
  const int64_t first = Evaluate(part, coordinates->indices());
  IndexSum affine{first, {}};
  for (const size_t mode : coordinates->modes()) {
    ModeVector step(extents_.size(), 0);
    step[mode] = 1;
    affine = Add(affine, Index(static_cast<int>(mode)),
                 Wide{Evaluate(part, step)} - first);
  }
  do {
    if (Evaluate(part, coordinates->indices()) !=
        Evaluate(affine, coordinates->indices())) {
      return std::nullopt;
    }
  } while (coordinates->Advance());
  return affine;
}

std::optional<IndexRange> IndexDomain::BoundsByValue(const IndexSum& part) {
  auto coordinates = Coordinates::Of(part, extents_);
  if (!coordinates) return std::nullopt;
  const int64_t first = Evaluate(part, coordinates->indices());
  IndexRange range{first, first};
  while (coordinates->Advance()) {
    const int64_t value = Evaluate(part, coordinates->indices());
    range.lowest = std::min(range.lowest, value);
    range.highest = std::max(range.highest, value);
  }
  return range;
}

IndexSum IndexDomain::Linearize(const IndexSum& sum) {
  IndexSum result{sum.constant, {}};
  IndexSum others;
  for (const IndexTerm& term : sum.terms) {
    const bool is_index = term.atom->kind == IndexAtom::Kind::kIndex;
    (is_index ? result : others).terms.push_back(term);
  }
  for (const IndexSum& part : IndependentParts(others)) {
    result = Add(result, AffineByValue(part).value_or(part));
  }
  return result;
}

std::optional<IndexRange> IndexDomain::TightBounds(const IndexSum& sum) {
  IndexSum rest{sum.constant, {}};
  Wide lowest = 0;
  Wide highest = 0;
  for (const IndexSum& part : IndependentParts(sum)) {
    const auto of_part = IsAffine(part) ? std::nullopt : BoundsByValue(part);
    if (!of_part) {
      rest = Add(rest, part);
      continue;
    }
    lowest += of_part->lowest;
    highest += of_part->highest;
  }
  // The parts that were tried may bring the rest back into int64.
  const auto from_lowest = BoundsOf(Add(rest, {lowest, {}}));
  const auto to_highest = BoundsOf(Add(rest, {highest, {}}));
  if (!from_lowest || !to_highest) return std::nullopt;
  return IndexRange{from_lowest->lowest, to_highest->highest};
}

}  // namespace tensord::core
