#include "core/backend/cpu/direct/direct_way.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/backend/cpu/block/tile_space.h"
#include "core/backend/cpu/block/transpose_block.h"
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

/// The mode whose elements are neighbours in an operand; npos if there is none.
constexpr size_t kNone = SIZE_MAX;
template <size_t count>
size_t UnitMode(const LoopModes<count>& modes, size_t operand) {
  for (size_t m = 0; m < modes.size(); ++m) {
    if (modes[m].strides[operand] == 1) return m;
  }
  return kNone;
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
  if (unit != kNone && unit > 0) {
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
                      .last_is_unit = unit != kNone && unit > 0};
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
                      .last_is_unit = unit != kNone && unit > 0};
  Cut(line, most, 1, terms);
  return terms;
}

/// What it costs to pack an input, a byte. The figures here and in Predict()
/// were measured on an AMD EPYC of family 26.
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
  const PackModes block = lanes.In(DirectWay::kInput, lanes.parts);
  switch (PackKindOf(block, terms.In(operand, terms.parts), panel)) {
    case PackKind::kCopyLanes: return (is_far ? 0.05 : 0.01) + 1.3 / lane_bytes;
    case PackKind::kTransposeTerms: {
      const size_t unit = UnitMode(terms.modes, operand);
      const double run = bytes * static_cast<double>(terms.parts[unit]);
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

/// Predicts `way`, whose parts are decided.
double Predict(const DirectWay& way, const GemmRates& rates) {
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

/// The way with these roles and tiles.
DirectWay WayOf(const Problem& problem, const GemmRates& rates, bool swaps,
                size_t shape, bool splits_runs) {
  DirectWay way{.type = problem.type_d,
                .swaps = swaps,
                .shape = shape,
                .tile = TileShapes(problem.type_d)[shape],
                .splits_runs = splits_runs};
  const int64_t bytes = SizeOf(way.type);
  const int64_t line = kCacheLineBytes / bytes;
  LoopModes<2> terms;
  for (const auto& mode : problem.k) {
    const auto [a, b] = mode.strides;
    terms.push_back({mode.extent, swaps ? std::array{b, a} : mode.strides});
  }
  for (const auto& mode : problem.batch) {
    const auto [a, b, c, d] = mode.strides;
    way.batch.push_back(
        {mode.extent, swaps ? std::array{b, a, c, d} : mode.strides});
  }
  const LoopModes<3>& rows = swaps ? problem.n : problem.m;
  const LoopModes<3>& columns = swaps ? problem.m : problem.n;
  const size_t leading = ElementCount(rows) >= ElementCount(columns)
                             ? DirectWay::kX
                             : DirectWay::kY;
  const size_t unit = UnitMode(rows, DirectWay::kInput);
  const bool is_across = unit != kNone && unit > 0;
  const int64_t bytes_of_x = is_across ? kBytesOfXAcross : kBytesOfX;
  const int64_t fewest_rows = is_across ? way.tile.rows * line : kFewestRows;
  way.terms =
      TermsOf(std::move(terms), leading, line,
              std::min(kBytesOfTerms, bytes_of_x / fewest_rows) / bytes);
  const int64_t term_bytes = way.terms.most_places() * bytes;
  int64_t most_rows =
      RoundUp(std::max(fewest_rows, bytes_of_x / term_bytes), way.tile.rows);
  int64_t most_columns = RoundUp(
      std::max(kFewestColumns, kBytesOfY / term_bytes), way.tile.columns);
  const int64_t wanted =
      rates.thread_count == 1 ? 1 : kTasksPerThread * rates.thread_count;
  const int64_t batch = ElementCount(way.batch);
  while (true) {
    way.rows = LanesOf(rows, line, most_rows, way.tile.rows, splits_runs);
    way.columns = LanesOf(columns, line, most_columns, way.tile.columns, false);
    const int64_t row_blocks = way.rows.block_count();
    const int64_t others = batch * way.columns.block_count();
    way.row_blocks_per_task = CeilDivide(
        row_blocks,
        std::clamp<int64_t>(CeilDivide(wanted, others), 1, row_blocks));
    const bool can_halve_rows = most_rows > fewest_rows;
    const bool can_halve_columns = most_columns > kFewestColumns;
    if (way.task_count() >= wanted || !(can_halve_rows || can_halve_columns)) {
      break;
    }
    // What is longer, so that packing pays.
    const bool halves_rows =
        can_halve_rows && (!can_halve_columns ||
                           way.rows.most_places() >= way.columns.most_places());
    int64_t& most = halves_rows ? most_rows : most_columns;
    most = RoundUp(most / 2, halves_rows ? way.tile.rows : way.tile.columns);
    if (halves_rows) most = std::max(most, fewest_rows);
    if (!halves_rows) most = std::max(most, kFewestColumns);
  }
  const int64_t d_bytes =
      batch * ElementCount(rows) * ElementCount(columns) * bytes;
  way.streams = d_bytes >= kStreamingBytes && way.terms.block_count() == 1;
  way.nanoseconds = Predict(way, rates);
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
