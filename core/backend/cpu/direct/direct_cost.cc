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

}  // namespace

double PredictDirectWay(const DirectWay& way, const GemmRates& rates) {
  // Flops a nanosecond and lane: two multiply-adds a clock. Tiles of few
  // vectors wait for their own sums.
  constexpr double kFlopsPerLane = 13.1, kWait = 1.3;
  // Nanoseconds of starting a task and a block.
  constexpr double kTask = 500, kBlock = 150;
  // Nanoseconds of storing an element of whole vectors, of others, and a run.
  constexpr double kWholeStore = 0.02, kStore = 0.1, kRun = 2.5;
  const auto as_double = [](int64_t count) {
    return static_cast<double>(count);
  };
  const int64_t element_bytes = SizeOf(way.type);
  const double bytes = as_double(element_bytes);
  const double batch = as_double(ElementCount(way.batch));
  const double rows = as_double(ElementCount(way.rows.modes));
  const double columns = as_double(ElementCount(way.columns.modes));
  const double terms = as_double(ElementCount(way.terms.modes));
  const double row_blocks = as_double(way.rows.block_count());
  const double column_blocks = as_double(way.columns.block_count());
  const double term_blocks = as_double(way.terms.block_count());
  const double ranges = as_double(way.row_ranges());

  const double flops = 2 * PaddedOf(way.rows, way.tile.rows) *
                       PaddedOf(way.columns, way.tile.columns) * terms;
  const double products = flops * (1 + kWait / as_double(way.tile.vectors())) /
                          (kFlopsPerLane * as_double(way.tile.lanes));

  // Inputs that caches do not keep come from memory each time.
  const double x_bytes = rows * terms * bytes;
  const double y_bytes = columns * terms * bytes;
  const bool x_is_far = batch * x_bytes >= as_double(kStreamingBytes);
  const bool y_is_far = batch * y_bytes >= as_double(kStreamingBytes);
  const double packs =
      x_bytes * column_blocks *
          PackNanoseconds(way.rows, way.terms, DirectWay::kX, way.tile.rows,
                          element_bytes, x_is_far) +
      y_bytes * ranges *
          PackNanoseconds(way.columns, way.terms, DirectWay::kY,
                          way.tile.columns, element_bytes, y_is_far);

  const double run = RunOf(way.rows), tile_rows = as_double(way.tile.rows);
  const bool stores_whole =
      (way.splits_runs && way.streams) ||
      (run >= tile_rows && std::fmod(run, tile_rows) == 0);
  const double stores =
      rows * columns * term_blocks *
      (stores_whole ? kWholeStore : kStore + kRun / std::min(run, tile_rows));

  Extents x, y, d;
  Append(way.rows, DirectWay::kInput, x);
  Append(way.terms, DirectWay::kX, x);
  Append(way.columns, DirectWay::kInput, y);
  Append(way.terms, DirectWay::kY, y);
  Append(way.rows, DirectWay::kD, d);
  Append(way.columns, DirectWay::kD, d);
  const double d_bytes = rows * columns * bytes * LineFactor(d, element_bytes);
  const double moved =
      (x_is_far ? column_blocks : 1) * x_bytes * LineFactor(x, element_bytes) +
      (y_is_far ? ranges : 1) * y_bytes * LineFactor(y, element_bytes) +
      (way.streams && stores_whole ? 1 : 2) * d_bytes;
  const double bytes_per_ns = 2 * rates.bytes_per_ns;
  // Sums that are added to: the caches' reading ahead hides most of it.
  constexpr double kAdditions = 0.3;
  const double additions =
      kAdditions * 2 * (term_blocks - 1) * d_bytes / bytes_per_ns;
  const double overhead = kTask * column_blocks * ranges +
                          kBlock * column_blocks * row_blocks * term_blocks;
  const double work = batch * (std::max(products, moved / bytes_per_ns) +
                               packs + stores + additions + overhead);
  // The last tasks leave threads without work.
  const double tasks = as_double(way.task_count());
  return work / tasks * std::ceil(tasks / as_double(rates.thread_count));
}

}  // namespace tensord::core
