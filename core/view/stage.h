// Transforms side by side: one step from a view to a view of it.
#pragma once

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/layout.h"
#include "core/view/transform.h"

namespace tensord::core {

/// Positions of modes in a view.
using ModePositions = absl::InlinedVector<int, 4>;

/// A transform and the modes it is between.
struct PlacedTransform {
  Transform transform;
  ModePositions lower;  // of the view below
  ModePositions upper;  // of the new view

  bool operator==(const PlacedTransform&) const = default;
};

/// Every lower and every upper mode belongs to exactly one transform; the
/// upper positions are free, so a stage permutes as it pleases.
///
///   (2, 6) -> (2, 2, 3):  pass_through {0} -> {0},
///                         unmerge (2, 3) {1} -> {1, 2}
///   transpose:            pass_through {0} -> {1}, pass_through {1} -> {0}
struct Stage {
  std::vector<PlacedTransform> transforms;

  bool operator==(const Stage&) const = default;
};

/// "stage 2, transform 0 (merge)", for messages.
std::string NameOf(int stage_number, const Stage& stage, int transform_number);

/// Extents of the modes that `stage` makes of modes of these extents.
///
/// Errors  INVALID_ARGUMENT: a mode that no transform names, or two do, or
///         that is not there; more than 64 upper modes; more elements than
///         int64 counts; what a transform refuses.
absl::StatusOr<ModeVector> UpperExtents(const Stage& stage,
                                        const ModeVector& lower_extents,
                                        int stage_number);

/// The numbers of `values` at these positions.
/// Requires positions that are there.
ModeVector At(const ModePositions& positions, const ModeVector& values);

}  // namespace tensord::core
