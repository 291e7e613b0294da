#include "core/backend/cpu/direct/direct_cost.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/backend/cpu/block/tile_space.h"
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

/// How much more than its elements an operand's block moves, as whole lines.
/// `one` and `other` are the groups whose modes it has.
template <size_t one_count, size_t other_count>
double LineFactor(const BlockModes<one_count>& one, size_t operand_of_one,
                  const BlockModes<other_count>& other, size_t operand_of_other,
                  int64_t element_bytes) {
  int64_t stretch = 1;
  const auto lengthen = [&](const auto& group, size_t operand) {
    for (size_t m = 0; m < group.modes.size(); ++m) {
      if (group.modes[m].strides[operand] != stretch) continue;
      stretch *= group.parts[m];
      return group.parts[m] == group.modes[m].extent && group.parts[m] > 1;
    }
    return false;
  };
  while (stretch * element_bytes < kCacheLineBytes &&
         (lengthen(one, operand_of_one) || lengthen(other, operand_of_other))) {
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

/// The places of all blocks of a group, in whole panels.
double PaddedOf(const BlockModes<3>& group, int64_t panel) {
  // Whole blocks and those at the ends, by mode.
  TileSpace<1> kinds;
  for (size_t m = 0; m < group.modes.size(); ++m) {
    const int64_t part = group.parts[m];
    const bool has_end = group.modes[m].extent % part != 0;
    kinds.Add({.extent = has_end ? 2 : 1, .step = 1, .strides = {0}});
  }
  double places = 0;
  BlockModes<3>::Sizes sizes = group.parts;
  for (int64_t kind = 0; kind < kinds.tile_count(); ++kind) {
    int64_t rest = kind;
    double blocks = 1;
    for (size_t m = 0; m < group.modes.size(); ++m) {
      const int64_t extent = group.modes[m].extent, part = group.parts[m];
      const bool is_end = rest % kinds.loop(m).extent == 1;
      rest /= kinds.loop(m).extent;
      sizes[m] = is_end ? extent % part : part;
      if (!is_end) blocks *= static_cast<double>(extent / part);
    }
    places +=
        blocks * static_cast<double>(RoundUp(group.PlacesOf(sizes), panel));
  }
  return places;
}

}  // namespace

double PredictDirectWay(const DirectWay& way, const GemmRates& rates) {
  // Two multiply-adds a clock, waits of sums for each other, and blocks.
  constexpr double kFlopsPerLane = 13.1, kWait = 1.3;
  constexpr double kTask = 500, kBlock = 150;
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

  constexpr size_t kInput = DirectWay::kInput, kD = DirectWay::kD;
  const double d_bytes =
      rows * columns * bytes *
      LineFactor(way.rows, kD, way.columns, kD, element_bytes);
  const double moved = (x_is_far ? column_blocks : 1) * x_bytes *
                           LineFactor(way.rows, kInput, way.terms,
                                      DirectWay::kX, element_bytes) +
                       (y_is_far ? ranges : 1) * y_bytes *
                           LineFactor(way.columns, kInput, way.terms,
                                      DirectWay::kY, element_bytes) +
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
