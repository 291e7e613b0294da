#include "core/backend/cpu/direct/direct_cost.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "core/backend/cpu/block/transpose_block.h"
#include "core/base/checked_math.h"

namespace tensord::core {
namespace {

/// What it costs to pack an input, a byte. Figures here and below were measured
/// on an AMD EPYC of family 26.
double PackNanoseconds(const BlockModes<3>& lanes, const BlockModes<2>& terms,
                       size_t operand, int64_t panel, int64_t element_bytes,
                       bool is_far) {
  const auto bytes = static_cast<double>(element_bytes);
  // Neighbours in a panel that are moved at a time.
  const int64_t lane_run =
      lanes.parts.empty() ? 1 : std::min(lanes.parts[0], panel);
  const double lane_bytes = bytes * static_cast<double>(lane_run);
  // Lines of the panel are stored in so many pieces more than one.
  const double pieces =
      std::max(0.0, static_cast<double>(kCacheLineBytes) / lane_bytes - 1);
  constexpr double kPiece = 0.1;
  const PackModes lane_modes = lanes.In(DirectWay::kInput, lanes.parts);
  const PackModes term_modes = terms.In(operand, terms.parts);
  switch (PackKindOf(lane_modes, term_modes, panel)) {
    case PackKind::kCopyLanes: return (is_far ? 0.05 : 0.01) + 1.3 / lane_bytes;
    case PackKind::kTransposeTerms: {
      const PackMode& unit = term_modes.modes[UnitMode(term_modes)];
      const double run = bytes * static_cast<double>(unit.size);
      return 0.04 + (is_far ? 5 : 2) / run + kPiece * pieces;
    }
    case PackKind::kTransposeLanes: {
      const double run = bytes * static_cast<double>(lanes.parts.back());
      return 0.07 + 5 / run + kPiece * pieces;
    }
    case PackKind::kGather: return 2 / bytes;
  }
  return 0;
}

/// A mode as it lies in one operand, and how much of it a block has.
struct Extent {
  int64_t extent, part, stride;
};
using Extents = absl::InlinedVector<Extent, 12>;

template <size_t operand_count>
void Append(const BlockModes<operand_count>& group, size_t operand,
            Extents& extents) {
  for (size_t m = 0; m < group.modes.size(); ++m) {
    const auto& mode = group.modes[m];
    extents.push_back({mode.extent, group.parts[m], mode.strides[operand]});
  }
}

/// How much more than its elements a block of an operand moves, as whole lines.
double LineFactor(const Extents& block, int64_t element_bytes) {
  int64_t stretch = 1;  // elements that are neighbours
  bool goes_on = true;
  while (goes_on && stretch * element_bytes < kCacheLineBytes) {
    const auto next =
        std::find_if(block.begin(), block.end(), [stretch](const Extent& mode) {
          return mode.stride == stretch && mode.part > 1;
        });
    if (next == block.end()) break;
    goes_on = next->part == next->extent;
    stretch *= next->part;
  }
  return std::max(1.0, static_cast<double>(kCacheLineBytes) /
                           static_cast<double>(stretch * element_bytes));
}

/// Rows of a block that are neighbours in d.
double RunOf(const BlockModes<3>& rows) {
  double run = 1;
  int64_t next = 1;
  for (size_t m = 0; m < rows.modes.size(); ++m) {
    if (rows.modes[m].strides[DirectWay::kD] != next) break;
    run *= static_cast<double>(rows.parts[m]);
    if (rows.parts[m] < rows.modes[m].extent) break;
    next *= rows.modes[m].extent;
  }
  return run;
}

/// The places of all blocks of a group, in whole panels. Blocks have `sizes`
/// of the modes before `mode`.
double PaddedFrom(const BlockModes<3>& group, int64_t panel, size_t mode,
                  BlockModes<3>::Sizes& sizes) {
  if (mode == group.modes.size()) {
    return static_cast<double>(RoundUp(group.PlacesOf(sizes), panel));
  }
  const int64_t extent = group.modes[mode].extent, part = group.parts[mode];
  sizes[mode] = part;
  double places = static_cast<double>(extent / part) *
                  PaddedFrom(group, panel, mode + 1, sizes);
  if (extent % part != 0) {
    sizes[mode] = extent % part;
    places += PaddedFrom(group, panel, mode + 1, sizes);
  }
  return places;
}

double PaddedOf(const BlockModes<3>& group, int64_t panel) {
  BlockModes<3>::Sizes sizes = group.parts;
  return PaddedFrom(group, panel, 0, sizes);
}

double AsDouble(int64_t count) { return static_cast<double>(count); }

/// What a way costs, part by part: nanoseconds for one element of the batch.
class WayCost {
 public:
  explicit WayCost(const DirectWay& way)
      : way_(way),
        rows_(AsDouble(ElementCount(way.rows.modes))),
        columns_(AsDouble(ElementCount(way.columns.modes))),
        column_blocks_(AsDouble(way.columns.block_count())),
        term_blocks_(AsDouble(way.terms.block_count())),
        ranges_(AsDouble(way.row_ranges())) {
    const double terms = AsDouble(ElementCount(way.terms.modes));
    const double bytes = AsDouble(element_bytes_);
    x_bytes_ = rows_ * terms * bytes;
    y_bytes_ = columns_ * terms * bytes;
    const double batch = AsDouble(ElementCount(way.batch));
    x_is_far_ = batch * x_bytes_ >= AsDouble(kStreamingBytes);
    y_is_far_ = batch * y_bytes_ >= AsDouble(kStreamingBytes);
    const double run = RunOf(way.rows), tile_rows = AsDouble(way.tile.rows);
    stored_run_ = std::min(run, tile_rows);
    stores_whole_ = (way.splits_runs && way.streams) ||
                    (run >= tile_rows && std::fmod(run, tile_rows) == 0);
    Extents d;
    Append(way.rows, DirectWay::kD, d);
    Append(way.columns, DirectWay::kD, d);
    d_bytes_ = rows_ * columns_ * bytes * LineFactor(d, element_bytes_);
  }

  double Products() const {
    // Flops a nanosecond and lane: two multiply-adds a clock. Tiles of few
    // vectors wait for their own sums.
    constexpr double kFlopsPerLane = 13.1, kWait = 1.3;
    const double flops = 2 * PaddedOf(way_.rows, way_.tile.rows) *
                         PaddedOf(way_.columns, way_.tile.columns) *
                         AsDouble(ElementCount(way_.terms.modes));
    return flops * (1 + kWait / AsDouble(way_.tile.vectors())) /
           (kFlopsPerLane * AsDouble(way_.tile.lanes));
  }

  double Packs() const {
    return x_bytes_ * column_blocks_ *
               PackNanoseconds(way_.rows, way_.terms, DirectWay::kX,
                               way_.tile.rows, element_bytes_, x_is_far_) +
           y_bytes_ * ranges_ *
               PackNanoseconds(way_.columns, way_.terms, DirectWay::kY,
                               way_.tile.columns, element_bytes_, y_is_far_);
  }

  double Stores() const {
    // Of an element of whole vectors, of others, and of a run.
    constexpr double kWholeStore = 0.02, kStore = 0.1, kRun = 2.5;
    return rows_ * columns_ * term_blocks_ *
           (stores_whole_ ? kWholeStore : kStore + kRun / stored_run_);
  }

  /// Bytes between memory and the caches. Inputs that caches do not keep come
  /// from memory each time.
  double MovedBytes() const {
    Extents x, y;
    Append(way_.rows, DirectWay::kInput, x);
    Append(way_.terms, DirectWay::kX, x);
    Append(way_.columns, DirectWay::kInput, y);
    Append(way_.terms, DirectWay::kY, y);
    return (x_is_far_ ? column_blocks_ : 1) * x_bytes_ *
               LineFactor(x, element_bytes_) +
           (y_is_far_ ? ranges_ : 1) * y_bytes_ *
               LineFactor(y, element_bytes_) +
           (way_.streams && stores_whole_ ? 1 : 2) * d_bytes_;
  }

  /// Bytes of sums that are added to, in effect: the caches' reading ahead
  /// hides most of them.
  double AddedBytes() const {
    constexpr double kAdditions = 0.3;
    return kAdditions * 2 * (term_blocks_ - 1) * d_bytes_;
  }

  double Overhead() const {
    // Of starting a task and a block.
    constexpr double kTask = 500, kBlock = 150;
    return kTask * column_blocks_ * ranges_ +
           kBlock * column_blocks_ * AsDouble(way_.rows.block_count()) *
               term_blocks_;
  }

 private:
  const DirectWay& way_;
  const int64_t element_bytes_ = SizeOf(way_.type);
  const double rows_, columns_;
  const double column_blocks_, term_blocks_, ranges_;
  double x_bytes_, y_bytes_;
  double d_bytes_;  // as whole lines
  bool x_is_far_, y_is_far_;
  double stored_run_;  // rows that are stored at once
  bool stores_whole_;  // vectors
};

}  // namespace

double PredictDirectWay(const DirectWay& way, const GemmRates& rates) {
  const WayCost cost(way);
  const double bytes_per_ns = 2 * rates.bytes_per_ns;
  const double work =
      AsDouble(ElementCount(way.batch)) *
      (std::max(cost.Products(), cost.MovedBytes() / bytes_per_ns) +
       cost.Packs() + cost.Stores() + cost.AddedBytes() / bytes_per_ns +
       cost.Overhead());
  // The last tasks leave threads without work.
  const double tasks = AsDouble(way.task_count());
  return work / tasks * std::ceil(tasks / AsDouble(rates.thread_count));
}

}  // namespace tensord::core
