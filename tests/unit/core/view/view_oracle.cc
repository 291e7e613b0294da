#include "tests/unit/core/view/view_oracle.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tensord::core::test {
namespace {

/// Lower coordinates of each upper coordinate of one transform, the upper ones
/// counted last mode fastest. -1: outside.
struct Table {
  ModeVector upper_extents;
  std::vector<Coordinates> lower;
};

std::vector<Coordinates> AllInOrder(const ModeVector& extents, Order order) {
  if (order == Order::kLastModeFastest) return AllCoordinates(extents);
  ModeVector reversed(extents.rbegin(), extents.rend());
  std::vector<Coordinates> all = AllCoordinates(reversed);
  for (Coordinates& one : all) std::ranges::reverse(one);
  return all;
}

class TableOf {
 public:
  explicit TableOf(const ModeVector& lower) : lower_(lower) {}

  Table operator()(const transform::PassThrough&) const {
    return {lower_, AllCoordinates(lower_)};
  }
  Table operator()(const transform::Merge& merge) const {
    std::vector<Coordinates> all = AllInOrder(lower_, merge.order);
    const auto count = static_cast<int64_t>(all.size());
    return {{count}, std::move(all)};
  }
  Table operator()(const transform::Unmerge& unmerge) const {
    std::vector<std::pair<Coordinates, int64_t>> numbered;
    int64_t number = 0;
    for (const Coordinates& upper :
         AllInOrder(unmerge.extents, unmerge.order)) {
      numbered.emplace_back(upper, number++);
    }
    std::ranges::sort(numbered);
    Table table{unmerge.extents, {}};
    for (const auto& [upper, at] : numbered) table.lower.push_back({at});
    return table;
  }
  Table operator()(const transform::Slice& slice) const {
    Table table;
    for (int64_t i = slice.start;
         slice.step > 0 ? i < slice.stop : i > slice.stop; i += slice.step) {
      table.lower.push_back({i});
    }
    table.upper_extents = {static_cast<int64_t>(table.lower.size())};
    return table;
  }
  Table operator()(const transform::Pad& pad) const {
    Table table;
    for (int64_t i = 0; i < pad.before; ++i) table.lower.push_back({-1});
    for (int64_t i = 0; i < lower_[0]; ++i) table.lower.push_back({i});
    for (int64_t i = 0; i < pad.after; ++i) table.lower.push_back({-1});
    table.upper_extents = {static_cast<int64_t>(table.lower.size())};
    return table;
  }
  Table operator()(const transform::Freeze& freeze) const {
    return {{}, {{freeze.index}}};
  }
  Table operator()(const transform::Insert& insert) const {
    return {{insert.extent},
            std::vector<Coordinates>(static_cast<size_t>(insert.extent))};
  }
  Table operator()(const transform::Replicate& replicate) const {
    return {replicate.extents,
            std::vector<Coordinates>(AllCoordinates(replicate.extents).size())};
  }
  Table operator()(const transform::Embed& embed) const {
    Table table{embed.extents, {}};
    for (const Coordinates& upper : AllCoordinates(embed.extents)) {
      int64_t at = embed.constant;
      for (size_t i = 0; i < upper.size(); ++i) {
        at += embed.coefficients[i] * upper[i];
      }
      table.lower.push_back({at});
    }
    return table;
  }
  Table operator()(const transform::Modulo& modulo) const {
    Table table{{modulo.extent}, {}};
    int64_t turn = 0;
    for (int64_t i = 0; i < modulo.extent; ++i) {
      table.lower.push_back({turn});
      if (++turn == modulo.modulus) turn = 0;
    }
    return table;
  }
  Table operator()(const transform::Xor&) const {
    Table table{lower_, {}};
    for (const Coordinates& upper : AllCoordinates(lower_)) {
      int64_t turn = upper[0];
      while (turn >= lower_[1]) turn -= lower_[1];
      int64_t flipped = 0;
      for (int64_t bit = 1; bit < lower_[1]; bit *= 2) {
        const bool is_one = upper[1] / bit % 2 != turn / bit % 2;
        if (is_one) flipped += bit;
      }
      table.lower.push_back({upper[0], flipped});
    }
    return table;
  }
  Table operator()(const transform::Offset& offset) const {
    Table table{{offset.extent}, {}};
    for (int64_t i = 0; i < offset.extent; ++i) {
      table.lower.push_back({offset.offset + i});
    }
    return table;
  }
  Table operator()(const transform::Diagonal&) const {
    Table table{{lower_[0]}, {}};
    for (int64_t i = 0; i < lower_[0]; ++i) {
      table.lower.push_back(Coordinates(lower_.size(), i));
    }
    return table;
  }

 private:
  ModeVector lower_;
};

/// Lower coordinates of one transform for one upper coordinate; nothing in
/// padding.
class StepDown {
 public:
  using Lower = std::optional<Coordinates>;

  StepDown(const ModeVector& lower, const Coordinates& upper)
      : lower_(lower), upper_(upper) {}

  Lower operator()(const transform::PassThrough&) const { return upper_; }
  Lower operator()(const transform::Merge& merge) const {
    Coordinates lower(lower_.size());
    int64_t left = upper_[0];
    for (size_t i = 0; i < lower.size(); ++i) {
      const size_t mode =
          merge.order == Order::kFirstModeFastest ? i : lower.size() - 1 - i;
      lower[mode] = left % lower_[mode];
      left /= lower_[mode];
    }
    return lower;
  }
  Lower operator()(const transform::Unmerge& unmerge) const {
    int64_t lower = 0;
    for (size_t i = 0; i < upper_.size(); ++i) {
      const size_t mode =
          unmerge.order == Order::kLastModeFastest ? i : upper_.size() - 1 - i;
      lower = lower * unmerge.extents[mode] + upper_[mode];
    }
    return Coordinates{lower};
  }
  Lower operator()(const transform::Slice& slice) const {
    return Coordinates{slice.start + upper_[0] * slice.step};
  }
  Lower operator()(const transform::Pad& pad) const {
    const int64_t lower = upper_[0] - pad.before;
    if (lower < 0 || lower >= lower_[0]) return std::nullopt;
    return Coordinates{lower};
  }
  Lower operator()(const transform::Freeze& freeze) const {
    return Coordinates{freeze.index};
  }
  Lower operator()(const transform::Insert&) const { return Coordinates{}; }
  Lower operator()(const transform::Replicate&) const { return Coordinates{}; }
  Lower operator()(const transform::Embed& embed) const {
    int64_t lower = embed.constant;
    for (size_t i = 0; i < upper_.size(); ++i) {
      lower += embed.coefficients[i] * upper_[i];
    }
    return Coordinates{lower};
  }
  Lower operator()(const transform::Modulo& modulo) const {
    return Coordinates{upper_[0] % modulo.modulus};
  }
  Lower operator()(const transform::Xor&) const {
    return Coordinates{upper_[0], upper_[1] ^ (upper_[0] % lower_[1])};
  }
  Lower operator()(const transform::Offset& offset) const {
    return Coordinates{upper_[0] + offset.offset};
  }
  Lower operator()(const transform::Diagonal&) const {
    return Coordinates(lower_.size(), upper_[0]);
  }

 private:
  const ModeVector& lower_;
  const Coordinates& upper_;
};

}  // namespace

int64_t WalkDown(const Layout& storage, int64_t offset,
                 const std::vector<Stage>& stages, Coordinates upper) {
  std::vector<ModeVector> extents = {storage.extents};
  for (const Stage& stage : stages) {
    extents.push_back(*UpperExtents(stage, extents.back(), 0));
  }
  for (size_t i = stages.size(); i-- > 0;) {
    Coordinates lower(extents[i].size());
    for (const PlacedTransform& placed : stages[i].transforms) {
      ModeVector lower_extents;
      for (const int mode : placed.lower) {
        lower_extents.push_back(extents[i][mode]);
      }
      Coordinates placed_upper;
      for (const int mode : placed.upper) placed_upper.push_back(upper[mode]);
      const auto placed_lower =
          std::visit(StepDown(lower_extents, placed_upper), placed.transform);
      if (!placed_lower) return ViewOracle::kPadding;
      for (size_t j = 0; j < placed.lower.size(); ++j) {
        lower[placed.lower[j]] = (*placed_lower)[j];
      }
    }
    upper = lower;
  }
  int64_t element = offset;
  for (size_t mode = 0; mode < upper.size(); ++mode) {
    element += upper[mode] * storage.strides[mode];
  }
  return element;
}

std::vector<Coordinates> AllCoordinates(const ModeVector& extents) {
  std::vector<Coordinates> all = {{}};
  for (const int64_t extent : extents) {
    std::vector<Coordinates> longer;
    for (const Coordinates& one : all) {
      for (int64_t i = 0; i < extent; ++i) {
        longer.push_back(one);
        longer.back().push_back(i);
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::vector<int64_t> ElementsOf(const View& view) {
  std::vector<int64_t> elements;
  for (const Coordinates& one : AllCoordinates(view.extents())) {
    elements.push_back(view.Locate(one).value_or(ViewOracle::kPadding));
  }
  return elements;
}

ViewOracle::ViewOracle(const Layout& storage, int64_t offset)
    : extents_(storage.extents) {
  for (const Coordinates& one : AllCoordinates(extents_)) {
    int64_t element = offset;
    for (size_t i = 0; i < one.size(); ++i) {
      element += one[i] * storage.strides[i];
    }
    elements_.push_back(element);
  }
}

int64_t ViewOracle::At(const Coordinates& coordinates) const {
  int64_t position = 0;
  for (size_t i = 0; i < coordinates.size(); ++i) {
    if (coordinates[i] < 0) return kPadding;
    position = position * extents_[i] + coordinates[i];
  }
  return elements_.at(static_cast<size_t>(position));
}

ViewOracle ViewOracle::Then(const Stage& stage) const {
  std::vector<Table> tables;
  std::vector<std::pair<int, int64_t>> placed_extents;
  for (const PlacedTransform& placed : stage.transforms) {
    ModeVector lower;
    for (const int mode : placed.lower) lower.push_back(extents_[mode]);
    tables.push_back(std::visit(TableOf(lower), placed.transform));
    for (size_t i = 0; i < placed.upper.size(); ++i) {
      placed_extents.emplace_back(placed.upper[i],
                                  tables.back().upper_extents[i]);
    }
  }
  std::ranges::sort(placed_extents);
  ViewOracle next;
  for (const auto& [mode, extent] : placed_extents) {
    next.extents_.push_back(extent);
  }
  for (const Coordinates& upper : AllCoordinates(next.extents_)) {
    Coordinates lower(extents_.size());
    for (size_t t = 0; t < tables.size(); ++t) {
      const PlacedTransform& placed = stage.transforms[t];
      size_t row = 0;
      for (size_t i = 0; i < placed.upper.size(); ++i) {
        row = row * static_cast<size_t>(tables[t].upper_extents[i]) +
              static_cast<size_t>(upper[placed.upper[i]]);
      }
      for (size_t i = 0; i < placed.lower.size(); ++i) {
        lower[placed.lower[i]] = tables[t].lower[row][i];
      }
    }
    next.elements_.push_back(At(lower));
  }
  return next;
}

bool ViewOracle::HasPadding() const {
  return std::ranges::count(elements_, kPadding) > 0;
}

bool ViewOracle::IsInjective() const {
  std::set<int64_t> seen;
  return std::ranges::all_of(elements_, [&](int64_t element) {
    return element == kPadding || seen.insert(element).second;
  });
}

std::optional<StridedView> ViewOracle::Strided() const {
  StridedView strided{extents_, ModeVector(extents_.size(), 1), 0};
  if (elements_.empty()) return strided;
  if (HasPadding()) return std::nullopt;
  strided.offset = elements_[0];
  for (size_t mode = 0; mode < extents_.size(); ++mode) {
    if (extents_[mode] == 1) continue;
    Coordinates step(extents_.size(), 0);
    step[mode] = 1;
    strided.strides[mode] = At(step) - strided.offset;
  }
  for (const Coordinates& one : AllCoordinates(extents_)) {
    int64_t element = strided.offset;
    for (size_t i = 0; i < one.size(); ++i) {
      element += one[i] * strided.strides[i];
    }
    if (element != At(one)) return std::nullopt;
  }
  return strided;
}

}  // namespace tensord::core::test
