// A view as the list of its elements, and random stages to try it on.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "core/base/layout.h"
#include "core/view/stage.h"
#include "core/view/view.h"

namespace tensord::core::test {

using Coordinates = std::vector<int64_t>;

/// Every coordinate of these extents, last mode fastest.
std::vector<Coordinates> AllCoordinates(const ModeVector& extents);

/// Where each index of the view leads, last mode fastest; -1 in padding.
std::vector<int64_t> ElementsOf(const View& view);

/// Holds every element of a view and moves them one by one. Knows transforms
/// by counting through tables, and no arithmetic of the product's.
class ViewOracle {
 public:
  static constexpr int64_t kPadding = -1;

  ViewOracle(const Layout& storage, int64_t offset);

  /// Requires a stage that fits.
  ViewOracle Then(const Stage& stage) const;

  const ModeVector& extents() const { return extents_; }
  /// Storage element of each coordinate, last mode fastest.
  const std::vector<int64_t>& elements() const { return elements_; }

  bool HasPadding() const;
  bool IsInjective() const;
  /// The strided form if there is one, with strides as StridedView has them.
  std::optional<StridedView> Strided() const;

 private:
  ViewOracle() = default;
  int64_t At(const Coordinates& coordinates) const;

  ModeVector extents_;
  std::vector<int64_t> elements_;
};

/// Where `upper` of a view of `storage` through `stages` leads, or kPadding.
/// Goes down stage by stage and knows nothing of what they make together, so
/// extents may be large.
int64_t WalkDown(const Layout& storage, int64_t offset,
                 const std::vector<Stage>& stages, Coordinates upper);

/// A stage that fits these extents and makes at most `element_limit` elements
/// in at most 6 modes. Every transform occurs.
Stage RandomStage(std::mt19937& rng, const ModeVector& extents,
                  int64_t element_limit);

/// A layout of up to 4 modes, some of extent `scale`, few empty, packed or with
/// gaps.
Layout RandomStorage(std::mt19937& rng, int64_t scale);

}  // namespace tensord::core::test
