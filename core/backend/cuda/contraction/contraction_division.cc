#include "core/backend/cuda/contraction/contraction_division.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "core/backend/cuda/contraction/tile_efficiency.h"
#include "core/base/checked_math.h"
#include "core/base/status.h"
#include "core/ops/operand_rounding.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;
using Division = ContractionDivision;

// Fewer tiles' depths are not worth another block: each writes its tile.
constexpr int64_t kLeastDepths = 8;
// What a block takes at least: addresses, first loads, results. A guess.
constexpr double kBlockNs = 1500;
// What follows was fitted to an H100
// (tests/benchmarks/results/2026-11-27-gpu-*). What the second level of cache
// gives, beside memory.
constexpr double kCacheSpeedup = 2.5;
// Instructions that bring a sum to d, those included that wait.
constexpr double kStoreInstructions = 30;
constexpr double kInstructions = 4 * 32;  // of a multiprocessor, in a cycle
// Of the time for memory, what is not hidden behind the rest.
constexpr double kMemoryShare = 0.5;

/// Blocks that are there at a time, by their registers.
int64_t BlocksAtOnce(const GpuModel& model, const Problem& problem,
                     DirectTile tile) {
  const int64_t of_multiprocessor = tile == DirectTile::kDeep              ? 4
                                    : ArithmeticBytes(problem.type_d) < 16 ? 2
                                                                           : 1;
  return of_multiprocessor * model.multiprocessor_count;
}

/// Bytes that move for each byte of an operand that is read by neighbours
/// `stride` elements apart in runs of `extent`.
double SectorShare(int64_t element_bytes, int64_t stride, int64_t extent) {
  constexpr double kSector = 32;
  const auto bytes = static_cast<double>(element_bytes);
  if (stride == 0) return 1 / static_cast<double>(extent);
  if (stride != 1) {
    return std::min(kSector, bytes * static_cast<double>(stride)) / bytes;
  }
  const double run = bytes * static_cast<double>(extent);
  return SectorBytes(run) / run;
}

/// How an operand is read.
struct Reading {
  DirectReading reading;
  double sector_share = 1;
};

/// An input with all its modes: a with m or b with n.
struct Input {
  const LoopModes<3>& side;
  const LoopModes<2>& k;
  const LoopModes<4>& batch;
  size_t operand;  // of k's strides and of the batch's
  TermOrder terms;

  /// Neighbours along k that are read together, whichever of them is first.
  const LoopMode<2>& neighbours() const {
    return terms == TermOrder::kInBlocks && k[0].strides[operand] != 1 ? k[1]
                                                                       : k[0];
  }
};

/// Whether elements are multiplied as they are stored. If not, they come
/// through registers, one by one.
bool IsPlain(const Problem& problem) {
  return !problem.conj_a && !problem.conj_b &&
         SizeOf(problem.type_d) == ArithmeticBytes(problem.type_d) &&
         RoundingOf(problem.type_d, problem.compute_type) ==
             OperandRounding::kNone;
}

/// Whether an input that is read along its side, which has that order, can be
/// read 16 bytes at a time.
bool IsOfVectors(const Problem& problem, const Input& input,
                 const SideOrder& order) {
  constexpr int64_t kVectorBytes = 16;
  const int64_t width = kVectorBytes / SizeOf(problem.type_d);
  if (!IsPlain(problem) || problem.alignment_bytes < kVectorBytes) return false;
  size_t first = 0;  // among the pieces, in the order of reading
  for (int64_t have = 1; have < int64_t{1} << order.log_d; ++first) {
    have *= order.pieces[first].extent;
  }
  if (first == order.pieces.size()) return width == 1;
  const auto is_whole = [width](int64_t x) { return x % width == 0; };
  for (size_t i = 0; i < order.pieces.size(); ++i) {
    const SideOrder::Piece& piece = order.pieces[i];
    const LoopMode<3>& mode = input.side[piece.mode];
    const int64_t step = piece.multiple * mode.strides[Problem::kFreeInput];
    if (i == first
            ? step != 1 || !is_whole(piece.extent) || !is_whole(mode.extent)
            : !is_whole(step)) {
      return width == 1;
    }
  }
  const auto has_whole_strides = [&](const auto& modes) {
    return std::all_of(modes.begin(), modes.end(), [&](const auto& mode) {
      return is_whole(mode.strides[input.operand]);
    });
  };
  return has_whole_strides(input.k) && has_whole_strides(input.batch);
}

/// How an input is read along its side, which has that order, or along k.
Reading ReadingOf(const Problem& problem, const Input& input,
                  const SideOrder& order, bool only_along_k) {
  const int64_t element_bytes = SizeOf(problem.type_d);
  constexpr double kNothing = std::numeric_limits<double>::infinity();
  const auto share = [&](int64_t extent, int64_t stride) {
    return extent <= 1 ? kNothing : SectorShare(element_bytes, stride, extent);
  };
  double along_side = kNothing;
  if (order.run_input > 1) {
    along_side = share(order.run_input, 1);
  } else if (!order.pieces.empty()) {  // neighbours in the first modes
    const SideOrder::Piece& first = order.pieces[0];
    along_side = share(first.extent,
                       input.side[first.mode].strides[Problem::kFreeInput]);
  }
  const double along_k = input.k.empty()
                             ? kNothing
                             : share(input.neighbours().extent,
                                     input.neighbours().strides[input.operand]);
  const bool is_along_k = only_along_k || along_k < along_side;
  const double chosen = is_along_k ? along_k : along_side;
  return {{.along_k = is_along_k,
           .log_d = is_along_k ? 0 : order.log_d,
           .log_input = is_along_k ? 0 : order.log_input,
           .by_vectors = !is_along_k && IsOfVectors(problem, input, order)},
          // Nothing to read along: single elements.
          std::isinf(chosen) ? 1 : chosen};
}

struct Readings {
  Reading a, b;
};

Input InputA(const DirectModes& modes, TermOrder terms) {
  return {modes.m, modes.k, modes.batch, 0, terms};
}
Input InputB(const DirectModes& modes, TermOrder terms) {
  return {modes.n, modes.k, modes.batch, 1, terms};
}

Readings ReadingsOf(const Problem& problem, const DirectModes& modes,
                    const Division& division) {
  const bool is_deep = division.tile == DirectTile::kDeep;
  return {.a = ReadingOf(problem, InputA(modes, division.terms), division.m,
                         is_deep),
          .b = ReadingOf(problem, InputB(modes, division.terms), division.n,
                         is_deep)};
}

DirectTileExtents ExtentsOf(const Problem& problem, DirectTile tile) {
  return ExtentsOf(tile,
                   static_cast<uint32_t>(ArithmeticBytes(problem.type_d)));
}

double Count(int64_t x) { return static_cast<double>(x); }

/// Products that the blocks compute, those of missing elements included.
double ProductCount(const Problem& problem, const Division& division) {
  DirectTileExtents tile = ExtentsOf(problem, division.tile);
  if (division.tile == DirectTile::kDeep && division.n.count == 1) {
    tile.n = 1;
    if (division.m.count == 1) tile.m = 1;
  }
  const double padded_k =
      Count(std::max<int64_t>(CeilDivide(division.part, tile.k), 1) * tile.k);
  return Count(division.block_count()) * tile.m * tile.n * padded_k;
}

/// SectorShare() of d, which is written in the order of m.
double SectorShareOfD(const Problem& problem, const DirectModes& modes,
                      const Division& division) {
  if (division.m.pieces.empty()) return 1;
  const SideOrder::Piece& first = division.m.pieces[0];
  return SectorShare(SizeOf(problem.type_d),
                     modes.m[first.mode].strides[Problem::kFreeD],
                     std::max(division.m.run_d, first.extent));
}

/// Sets what the division, of which all else is decided, should take.
void Predict(const GpuModel& model, const Problem& problem,
             const DirectModes& modes, const Readings& readings,
             Division& division) {
  // Blocks come in waves, each of which takes as long as a full one.
  const double at_once = Count(BlocksAtOnce(model, problem, division.tile));
  const double blocks = Count(division.block_count());
  const double wave_share = std::ceil(blocks / at_once) * at_once / blocks;

  const double per_ns = model.multiprocessor_count * model.clock_ghz *
                        DirectProductsPerCycle(model, problem.type_d);
  const double compute =
      ProductCount(problem, division) * wave_share /
      (per_ns * TileEfficiency(model, problem.type_d, division.tile,
                               readings.a.reading, readings.b.reading));

  const auto bytes = Count(SizeOf(problem.type_d));
  const double terms = Count(ElementCount(modes.k));
  const double m = Count(ElementCount(modes.m));
  const double n = Count(ElementCount(modes.n));
  const double batch = Count(division.batch_count);
  const double of_a = batch * m * terms * bytes * readings.a.sector_share;
  const double of_b = batch * n * terms * bytes * readings.b.sector_share;
  const double of_d =
      batch * m * n * bytes * SectorShareOfD(problem, modes, division);
  const double memory = (of_a + of_b + of_d) / model.copy_bytes_per_ns();
  const double cache =
      (of_a * Count(division.tiles_n) + of_b * Count(division.tiles_m) + of_d) /
      (kCacheSpeedup * model.copy_bytes_per_ns());

  const DirectTileExtents tile = ExtentsOf(problem, division.tile);
  const double store =
      std::ceil(blocks / at_once) * at_once * tile.m * tile.n *
      kStoreInstructions /
      (kInstructions * model.multiprocessor_count * model.clock_ghz);

  division.bytes = of_a + of_b + of_d;
  division.nanoseconds =
      model.launch_ns +
      std::max({compute + store + kMemoryShare * memory + cache, memory,
                std::ceil(blocks / at_once) * kBlockNs});
  if (division.split_count > 1) {
    const double partial = 2 * Count(division.split_count) * batch * m * n *
                           Count(ArithmeticBytes(problem.type_d));
    division.bytes += partial;
    division.nanoseconds +=
        model.launch_ns + partial / model.copy_bytes_per_ns();
  }
}

/// The order of d and blocks of both orders, as many as fill tiles.
absl::InlinedVector<SideOrder, 1> OrdersOfM(const Problem& problem,
                                            const LoopModes<3>& m,
                                            DirectTile tile) {
  absl::InlinedVector<SideOrder, 1> orders = {OrderOfD(m)};
  if (tile == DirectTile::kDeep) return orders;
  // Runs shorter than half a sector are not worth it.
  const auto least = static_cast<uint32_t>(
      std::countr_zero(static_cast<uint64_t>(16 / SizeOf(problem.type_d))));
  const auto all =
      static_cast<uint32_t>(std::countr_zero(ExtentsOf(problem, tile).m));
  for (uint32_t log_d = least; log_d + least <= all; ++log_d) {
    for (uint32_t log_input = least; log_d + log_input <= all; ++log_input) {
      auto blocks = OrderInBlocks(m, log_d, log_input);
      if (blocks.has_value()) orders.push_back(*std::move(blocks));
    }
  }
  return orders;
}

/// The order of b where that reads less than d's: d is written along m.
SideOrder OrderOfN(const Problem& problem, const DirectModes& modes,
                   TermOrder terms, DirectTile tile) {
  SideOrder of_d = OrderOfD(modes.n), of_b = OrderOfInput(modes.n);
  const auto share = [&](const SideOrder& order) {
    return ReadingOf(problem, InputB(modes, terms), order,
                     tile == DirectTile::kDeep)
        .sector_share;
  };
  return share(of_b) < share(of_d) ? of_b : of_d;
}

/// Decides how many blocks share the terms.
void DealOut(const GpuModel& model, const Problem& problem,
             const DirectModes& modes, bool splits, Division& division) {
  const DirectTileExtents extents = ExtentsOf(problem, division.tile);
  const int64_t terms = ElementCount(modes.k);
  division.tiles_m = CeilDivide(division.m.count, extents.m);
  division.tiles_n = CeilDivide(division.n.count, extents.n);
  division.batch_count = ElementCount(modes.batch);
  division.part = std::max<int64_t>(terms, 1);
  if (!splits) return;
  const int64_t wanted = CeilDivide(BlocksAtOnce(model, problem, division.tile),
                                    division.block_count());
  const int64_t count = std::min(
      wanted, std::max<int64_t>(terms / (kLeastDepths * extents.k), 1));
  division.part =
      CeilDivide(CeilDivide(division.part, count), extents.k) * extents.k;
  division.split_count = std::max<int64_t>(CeilDivide(terms, division.part), 1);
}

}  // namespace

bool IsDirectType(ElementType type) { return type != ElementType::kBool; }

absl::Status CheckDirect(const Problem& problem) {
  if (problem.type_a != problem.type_d || problem.type_b != problem.type_d) {
    return Unimplemented("TYPES_DIFFER", "it takes operands of one type");
  }
  if (!IsDirectType(problem.type_d)) {
    return Unimplemented("TYPE_UNSUPPORTED", "it has no arithmetic of bool");
  }
  // As floating point, in which none overflows.
  const auto count = [](const auto& modes) {
    return static_cast<double>(ElementCount(modes));
  };
  const double elements =
      count(problem.m) * count(problem.n) * count(problem.batch);
  const double terms =
      count(problem.k) * count(problem.a_only) * count(problem.b_only);
  if (std::max(elements, terms) > static_cast<double>(kMaxIndex)) {
    return Unimplemented("TOO_MANY_ELEMENTS", "it sums ", terms,
                         " terms for each of ", elements, " elements, at most ",
                         kMaxIndex, " are possible of either");
  }
  return absl::OkStatus();
}

Division Divide(const GpuModel& model, const Problem& problem, DirectTile tile,
                bool splits) {
  Division best;
  best.nanoseconds = std::numeric_limits<double>::infinity();
  for (const bool swaps : {false, true}) {
    const auto as_in_a = DirectModesOf(problem, swaps, TermOrder::kAsInA);
    const auto orders = OrdersOfM(problem, as_in_a->m, tile);
    for (const TermOrder terms :
         {TermOrder::kAsInA, TermOrder::kAsInB, TermOrder::kInBlocks}) {
      const auto found = DirectModesOf(problem, swaps, terms);
      if (!found.has_value()) continue;
      const DirectModes& modes = *found;
      if (terms == TermOrder::kAsInB && modes.k == as_in_a->k) continue;
      const SideOrder n = OrderOfN(problem, modes, terms, tile);
      for (const SideOrder& m : orders) {
        Division division{
            .tile = tile, .swaps = swaps, .terms = terms, .m = m, .n = n};
        DealOut(model, problem, modes, splits, division);
        const Readings readings = ReadingsOf(problem, modes, division);
        division.reading_a = readings.a.reading;
        division.reading_b = readings.b.reading;
        Predict(model, problem, modes, readings, division);
        if (std::tie(division.nanoseconds, division.bytes) <
            std::tie(best.nanoseconds, best.bytes)) {
          best = std::move(division);
        }
      }
    }
  }
  return best;
}

bool MaySplit(const GpuModel& model, const Problem& problem, DirectTile tile) {
  const DirectTileExtents extents = ExtentsOf(problem, tile);
  const int64_t m = ElementCount(problem.m), n = ElementCount(problem.n);
  // Blocks of two orders are no fewer.
  const int64_t least_blocks =
      std::min(CeilDivide(m, extents.m) * CeilDivide(n, extents.n),
               CeilDivide(n, extents.m) * CeilDivide(m, extents.n)) *
      ElementCount(problem.batch);
  const int64_t terms = ElementCount(problem.k) * ElementCount(problem.a_only) *
                        ElementCount(problem.b_only);
  return least_blocks < BlocksAtOnce(model, problem, tile) &&
         terms >= 2 * kLeastDepths * extents.k;
}

int64_t PartialBytes(const Problem& problem, const Division& division) {
  if (division.split_count == 1) return 0;
  return division.split_count * division.batch_count * ElementCount(problem.m) *
         ElementCount(problem.n) * ArithmeticBytes(problem.type_d);
}

}  // namespace tensord::core::cuda
