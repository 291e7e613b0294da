#include "core/backend/cpu/direct/direct_way.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "core/backend/cpu/block/transpose_block.h"
#include "core/backend/cpu/direct/direct_cost.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

using Problem = ContractionProblem;

// Bytes of packed blocks: x in the second cache beside what y and d take of
// it, a panel of y in the first, all of y in the second or third. Where x has
// its neighbours across panels, it pays to read more of them at a time.
constexpr int64_t kBytesOfX = 256 << 10;
constexpr int64_t kBytesOfXAcross = 512 << 10;
constexpr int64_t kBytesOfTerms = 3 << 9;  // of a lane
constexpr int64_t kBytesOfY = 768 << 10;
constexpr int64_t kFewestRows = 64, kFewestColumns = 24;
/// Padding that costs less than gathering elements one by one.
constexpr double kMostPadding = 1.25;
constexpr int64_t kTasksPerThread = 4;

/// The mode whose elements are neighbours in an operand, or kNoMode.
template <size_t count>
size_t UnitMode(const LoopModes<count>& modes, size_t operand) {
  for (size_t m = 0; m < modes.size(); ++m) {
    if (modes[m].strides[operand] == 1) return m;
  }
  return kNoMode;
}

/// A part of `extent` near `most` that leaves no small remainder, of which
/// `before` make multiples of `multiple` where that is near, too.
int64_t PartOf(int64_t extent, int64_t most, int64_t before, int64_t multiple) {
  if (extent <= most) return extent;
  const int64_t unit = multiple / std::gcd(before, multiple);
  const int64_t even = CeilDivide(extent, CeilDivide(extent, most));
  return std::min(extent, unit <= most ? RoundUp(even, unit) : even);
}

/// Parts that together have about `most` places, in panels of `panel`: as much
/// as fits of the first modes. Of the last one, if it is what the operand's
/// lines hold, there are whole lines, as many as leave the others a panel.
template <size_t count>
void Cut(int64_t line, int64_t most, int64_t panel, BlockModes<count>& group) {
  const size_t modes = group.modes.size();
  group.parts.assign(modes, 1);
  int64_t left = most;
  if (group.last_is_unit) {
    const int64_t extent = group.modes.back().extent;
    const int64_t wide = panel == 1 ? line : std::max(line, most / panel);
    group.parts.back() =
        extent <= wide
            ? extent
            : std::min(
                  wide / line * line,
                  RoundUp(CeilDivide(extent, CeilDivide(extent, wide)), line));
    left = std::max<int64_t>(1, left / group.parts.back());
  }
  int64_t before = 1;
  for (size_t m = 0; m < modes && left > 1; ++m) {
    const bool is_unit = group.last_is_unit && m + 1 == modes;
    const int64_t extent = group.modes[m].extent;
    int64_t& part = group.parts[m];
    if (is_unit) {
      part = PartOf(extent, part * left, 1, 1);
      break;
    }
    if (m > 0 && m == group.padded) before = RoundUp(before, group.pads_to);
    part = PartOf(extent, left, before, panel);
    before *= part;
    left /= m + 1 == group.padded ? RoundUp(part, group.pads_to) : part;
    if (part < extent) break;
  }
}

/// `modes` in their order, but mode `unit` last unless it is first.
template <size_t count>
LoopModes<count> UnitLast(LoopModes<count> modes, size_t unit) {
  if (unit != kNoMode && unit > 0) {
    std::rotate(modes.begin() + static_cast<int64_t>(unit),
                modes.begin() + static_cast<int64_t>(unit) + 1, modes.end());
  }
  return modes;
}

/// Rows or columns in blocks of about `most`, in panels of `panel`; panels have
/// one run of the first mode each if `splits_runs` says so.
BlockModes<3> LanesOf(const LoopModes<3>& modes, int64_t line, int64_t most,
                      int64_t panel, bool splits_runs) {
  const size_t unit = UnitMode(modes, DirectWay::kInput);
  BlockModes<3> lanes{.modes = UnitLast(modes, unit),
                      .parts = {},
                      .last_is_unit = unit != kNoMode && unit > 0};
  if (splits_runs) {
    lanes.padded = 1;
    lanes.pads_to = panel;
  }
  Cut(line, most, panel, lanes);
  if (lanes.last_is_unit && !splits_runs) {
    int64_t before = 1;
    for (size_t m = 0; m + 1 < lanes.modes.size(); ++m) {
      before *= lanes.parts[m];
    }
    const auto padded = static_cast<double>(RoundUp(before, panel));
    if (padded <= kMostPadding * static_cast<double>(before)) {
      lanes.padded = lanes.modes.size() - 1;
      lanes.pads_to = panel;
    }
  }
  return lanes;
}

/// Whether d has runs along the first mode that are not whole panels, and
/// columns that follow each other run by run, so that tiles of one run each
/// hold whole lines.
bool HasShortRuns(const LoopModes<3>& rows, const LoopModes<3>& columns,
                  int64_t panel) {
  constexpr size_t kD = DirectWay::kD;
  return !rows.empty() && !columns.empty() && rows[0].strides[kD] == 1 &&
         rows[0].extent > 1 && rows[0].extent < 4 * panel &&
         rows[0].extent % panel != 0 &&
         columns[0].strides[kD] == rows[0].extent;
}

/// Terms in the order of the input `leading`, with a line of the other one's
/// neighbours.
BlockModes<2> TermsOf(LoopModes<2> modes, size_t leading, int64_t line,
                      int64_t most) {
  std::stable_sort(modes.begin(), modes.end(),
                   [leading](const auto& x, const auto& y) {
                     return x.strides[leading] < y.strides[leading];
                   });
  const size_t unit = UnitMode(modes, 1 - leading);
  BlockModes<2> terms{.modes = UnitLast(std::move(modes), unit),
                      .parts = {},
                      .last_is_unit = unit != kNoMode && unit > 0};
  Cut(line, most, 1, terms);
  return terms;
}

/// A way with these roles and this tile, and with the batch; nothing is cut.
DirectWay UncutWay(const Problem& problem, bool swaps, size_t shape,
                   bool splits_runs) {
  DirectWay way{.type = problem.type_d,
                .swaps = swaps,
                .shape = shape,
                .tile = TileShapes(problem.type_d)[shape],
                .splits_runs = splits_runs};
  for (const auto& mode : problem.batch) {
    const auto [a, b, c, d] = mode.strides;
    way.batch.push_back(
        {mode.extent, swaps ? std::array{b, a, c, d} : mode.strides});
  }
  return way;
}

/// Most rows and columns of a block, and the rows that it has at least.
struct LaneLimits {
  int64_t rows, columns;
  int64_t fewest_rows;
};

/// Cuts rows and columns into blocks, halved until there are `wanted` tasks.
void CutLanes(const LoopModes<3>& rows, const LoopModes<3>& columns,
              LaneLimits most, int64_t wanted, DirectWay& way) {
  const int64_t line = kCacheLineBytes / SizeOf(way.type);
  while (true) {
    way.rows = LanesOf(rows, line, most.rows, way.tile.rows, way.splits_runs);
    way.columns = LanesOf(columns, line, most.columns, way.tile.columns, false);
    const int64_t row_blocks = way.rows.block_count();
    const int64_t others = ElementCount(way.batch) * way.columns.block_count();
    way.row_blocks_per_task = CeilDivide(
        row_blocks,
        std::clamp<int64_t>(CeilDivide(wanted, others), 1, row_blocks));
    const bool can_halve_rows = most.rows > most.fewest_rows;
    const bool can_halve_columns = most.columns > kFewestColumns;
    if (way.task_count() >= wanted || !(can_halve_rows || can_halve_columns)) {
      return;
    }
    // What is longer, so that packing pays.
    if (can_halve_rows &&
        (!can_halve_columns ||
         way.rows.most_places() >= way.columns.most_places())) {
      most.rows =
          std::max(RoundUp(most.rows / 2, way.tile.rows), most.fewest_rows);
    } else {
      most.columns =
          std::max(RoundUp(most.columns / 2, way.tile.columns), kFewestColumns);
    }
  }
}

/// The way with these roles and tiles.
DirectWay WayOf(const Problem& problem, const GemmRates& rates, bool swaps,
                size_t shape, bool splits_runs) {
  DirectWay way = UncutWay(problem, swaps, shape, splits_runs);
  const int64_t bytes = SizeOf(way.type);
  const int64_t line = kCacheLineBytes / bytes;
  LoopModes<2> terms;
  for (const auto& mode : problem.k) {
    const auto [a, b] = mode.strides;
    terms.push_back({mode.extent, swaps ? std::array{b, a} : mode.strides});
  }
  const LoopModes<3>& rows = swaps ? problem.n : problem.m;
  const LoopModes<3>& columns = swaps ? problem.m : problem.n;
  const size_t leading = ElementCount(rows) >= ElementCount(columns)
                             ? DirectWay::kX
                             : DirectWay::kY;
  const size_t unit = UnitMode(rows, DirectWay::kInput);
  const bool is_across = unit != kNoMode && unit > 0;
  const int64_t bytes_of_x = is_across ? kBytesOfXAcross : kBytesOfX;
  const int64_t fewest_rows = is_across ? way.tile.rows * line : kFewestRows;
  way.terms =
      TermsOf(std::move(terms), leading, line,
              std::min(kBytesOfTerms, bytes_of_x / fewest_rows) / bytes);
  const int64_t term_bytes = way.terms.most_places() * bytes;
  const LaneLimits limits = {
      .rows = RoundUp(std::max(fewest_rows, bytes_of_x / term_bytes),
                      way.tile.rows),
      .columns = RoundUp(std::max(kFewestColumns, kBytesOfY / term_bytes),
                         way.tile.columns),
      .fewest_rows = fewest_rows};
  CutLanes(rows, columns, limits,
           rates.thread_count == 1 ? 1 : kTasksPerThread * rates.thread_count,
           way);
  const int64_t d_bytes = ElementCount(way.batch) * ElementCount(rows) *
                          ElementCount(columns) * bytes;
  way.streams = d_bytes >= kStreamingBytes && way.terms.block_count() == 1;
  way.nanoseconds = PredictDirectWay(way, rates);
  return way;
}

}  // namespace

template <size_t operand_count>
int64_t BlockModes<operand_count>::block_count() const {
  int64_t count = 1;
  for (size_t m = 0; m < modes.size(); ++m) {
    count *= CeilDivide(modes[m].extent, parts[m]);
  }
  return count;
}

template <size_t operand_count>
PackModes BlockModes<operand_count>::In(size_t operand,
                                        const Sizes& sizes) const {
  PackModes block;
  for (size_t m = 0; m < modes.size(); ++m) {
    if (m > 0 && m == padded) {
      block.places = RoundUp(block.places, pads_to);
    }
    block.modes.push_back({.size = sizes[m],
                           .step = block.places,
                           .stride = modes[m].strides[operand]});
    block.places *= sizes[m];
  }
  return block;
}

template <size_t operand_count>
int64_t BlockModes<operand_count>::PlacesOf(const Sizes& sizes) const {
  return In(0, sizes).places;
}

template struct BlockModes<2>;
template struct BlockModes<3>;

int64_t DirectWay::x_elements() const {
  return RoundUp(rows.most_places(), tile.rows) * terms.most_places();
}

int64_t DirectWay::y_elements() const {
  return RoundUp(columns.most_places(), tile.columns) * terms.most_places();
}

absl::StatusOr<std::vector<DirectWay>> DirectWays(const Problem& problem,
                                                  const GemmRates& rates) {
  const ElementType type = problem.type_d;
  if ((type != ElementType::kFloat32 && type != ElementType::kFloat64) ||
      problem.type_a != type || problem.type_b != type) {
    return Unimplemented("TYPE_UNSUPPORTED",
                         "it is for float32 and float64, got ",
                         NameOf(problem.type_a), " and ",
                         NameOf(problem.type_b), " into ", NameOf(type));
  }
  if (RoundingOf(type, problem.compute_type) != OperandRounding::kNone) {
    return Unimplemented("COMPUTE_TYPE_UNSUPPORTED",
                         "it does not round operands to ",
                         NameOf(problem.compute_type));
  }
  if (!problem.a_only.empty() || !problem.b_only.empty()) {
    return Unimplemented("MODES_UNSUPPORTED",
                         "modes of one input alone are to be summed");
  }
  if (ElementCount(problem.k) == 0) {
    return Unimplemented("NO_TERMS", "there is nothing to sum");
  }
  const size_t shapes = TileShapes(type).size();
  if (shapes == 0) {
    return Unimplemented("NO_VECTORS",
                         "this CPU's vectors are of no known length");
  }
  std::vector<DirectWay> ways;
  for (const bool swaps : {false, true}) {
    for (size_t shape = 0; shape < shapes; ++shape) {
      ways.push_back(WayOf(problem, rates, swaps, shape, false));
      if (HasShortRuns(swaps ? problem.n : problem.m,
                       swaps ? problem.m : problem.n, ways.back().tile.rows)) {
        ways.push_back(WayOf(problem, rates, swaps, shape, true));
      }
    }
  }
  return ways;
}

absl::StatusOr<DirectWay> ChooseDirectWay(const Problem& problem,
                                          const GemmRates& rates) {
  TENSORD_ASSIGN_OR_RETURN(std::vector<DirectWay> ways,
                           DirectWays(problem, rates));
  return *std::min_element(ways.begin(), ways.end(),
                           [](const DirectWay& x, const DirectWay& y) {
                             return x.nanoseconds < y.nanoseconds;
                           });
}

}  // namespace tensord::core
