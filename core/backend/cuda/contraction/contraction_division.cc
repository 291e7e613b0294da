#include "core/backend/cuda/contraction/contraction_division.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/checked_math.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;
using Division = ContractionDivision;

// Blocks on a multiprocessor at a time, by their registers.
constexpr int64_t kBlocksPerMultiprocessor = 2;
// Fewer tiles' depths are not worth another block: each writes its tile.
constexpr int64_t kLeastDepths = 8;
// What the second level of cache gives, beside memory. A guess.
constexpr double kCacheSpeedup = 2.5;

/// Of the arithmetic, the part that multiplies: the rest is addresses and
/// shared memory. Guesses, to be fitted.
double EfficiencyOf(DirectTile tile) {
  switch (tile) {
    case DirectTile::kLarge: return 0.8;
    case DirectTile::kSquare: return 0.5;
    case DirectTile::kTall: return 0.35;
    case DirectTile::kDeep: return 0.15;
  }
  return 0;
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

/// How an operand is read along its side (m or n) and along k.
struct Reading {
  bool along_k = false;
  double sector_share = 1;
};

template <size_t side_operands>
Reading ReadingOf(int64_t element_bytes, const LoopModes<side_operands>& side,
                  const LoopModes<2>& k, size_t operand_of_k,
                  bool only_along_k) {
  // Neighbours are neighbours in the first modes.
  const auto first = [](const auto& modes, size_t operand) {
    return modes.empty()
               ? LoopMode<1>{1, {0}}
               : LoopMode<1>{modes[0].extent, {modes[0].strides[operand]}};
  };
  const auto share = [&](const LoopMode<1>& mode) {
    if (mode.extent <= 1) return std::numeric_limits<double>::infinity();
    return SectorShare(element_bytes, mode.strides[0], mode.extent);
  };
  const double along_side = share(first(side, 0));
  const double along_k = share(first(k, operand_of_k));
  const bool is_along_k = only_along_k || along_k < along_side;
  const double chosen = is_along_k ? along_k : along_side;
  // Nothing to read along: single elements.
  return {is_along_k, std::isinf(chosen) ? 1 : chosen};
}

struct Readings {
  Reading a, b;
};

Readings ReadingsOf(const Problem& problem, const DirectModes& modes,
                    DirectTile tile) {
  const int64_t bytes = SizeOf(problem.type_d);
  const bool is_deep = tile == DirectTile::kDeep;
  return {.a = ReadingOf(bytes, modes.m, modes.k, 0, is_deep),
          .b = ReadingOf(bytes, modes.n, modes.k, 1, is_deep)};
}

double Predict(const GpuModel& model, const Problem& problem,
               const DirectModes& modes, const Readings& readings,
               const Division& division) {
  const auto count = [](int64_t x) { return static_cast<double>(x); };
  const int64_t arithmetic_bytes = ArithmeticBytes(problem);
  const DirectTileExtents tile =
      ExtentsOf(division.tile, static_cast<uint32_t>(arithmetic_bytes));
  const bool is_complex = IsComplex(problem.type_d);
  const bool is_wide = RealPartOf(problem.type_d) == ElementType::kFloat64;

  // Blocks come in waves, each of which takes as long as a full one.
  const double at_once = static_cast<double>(kBlocksPerMultiprocessor) *
                         model.multiprocessor_count;
  const double blocks = count(division.block_count());
  const double wave_share = std::ceil(blocks / at_once) * at_once / blocks;

  const double padded_k =
      count(std::max<int64_t>(CeilDivide(division.part, tile.k), 1) * tile.k);
  const double products = blocks * tile.m * tile.n * padded_k;
  const double per_ns = model.multiprocessor_count * model.clock_ghz *
                        (is_wide ? model.float64_products_per_cycle
                                 : model.float32_products_per_cycle);
  const double compute = products * (is_complex ? 4 : 1) * wave_share /
                         (per_ns * EfficiencyOf(division.tile));

  const auto bytes = count(SizeOf(problem.type_d));
  const double terms = count(ElementCount(modes.k));
  const double m = count(ElementCount(modes.m));
  const double n = count(ElementCount(modes.n));
  const double batch = count(division.batch_count);
  const double of_a = batch * m * terms * bytes * readings.a.sector_share;
  const double of_b = batch * n * terms * bytes * readings.b.sector_share;
  // Written in the order of m.
  const double of_d =
      batch * m * n * bytes *
      (modes.m.empty() ? 1
                       : SectorShare(SizeOf(problem.type_d),
                                     modes.m[0].strides[Problem::kFreeD],
                                     modes.m[0].extent));
  const double memory = (of_a + of_b + of_d) / model.copy_bytes_per_ns();
  const double cache =
      (of_a * count(division.tiles_n) + of_b * count(division.tiles_m) + of_d) /
      (kCacheSpeedup * model.copy_bytes_per_ns());

  double result = model.launch_ns + std::max({compute, memory, cache});
  if (division.split_count > 1) {
    result += model.launch_ns + 2 * count(division.split_count) * batch * m *
                                    n * count(arithmetic_bytes) /
                                    model.copy_bytes_per_ns();
  }
  return result;
}

}  // namespace

bool IsDirectType(ElementType type) { return !IsInteger(type); }

int64_t ArithmeticBytes(const Problem& problem) {
  return std::max<int64_t>(SizeOf(problem.type_d), 4);
}

DirectModes DirectModesOf(const Problem& problem, bool swaps) {
  DirectModes modes{problem.batch, problem.m, problem.n, problem.k};
  for (const auto& mode : problem.a_only) {
    modes.k.push_back({mode.extent, {mode.strides[0], 0}});
  }
  for (const auto& mode : problem.b_only) {
    modes.k.push_back({mode.extent, {0, mode.strides[0]}});
  }
  if (swaps) {
    std::swap(modes.m, modes.n);
    for (auto& mode : modes.k) std::swap(mode.strides[0], mode.strides[1]);
    for (auto& mode : modes.batch) std::swap(mode.strides[0], mode.strides[1]);
  }
  return modes;
}

Division Divide(const GpuModel& model, const Problem& problem, DirectTile tile,
                bool splits) {
  const DirectTileExtents extents =
      ExtentsOf(tile, static_cast<uint32_t>(ArithmeticBytes(problem)));
  Division best;
  best.nanoseconds = std::numeric_limits<double>::infinity();
  for (const bool swaps : {false, true}) {
    const DirectModes modes = DirectModesOf(problem, swaps);
    const int64_t terms = ElementCount(modes.k);
    Division division{.tile = tile,
                      .swaps = swaps,
                      .tiles_m = CeilDivide(ElementCount(modes.m), extents.m),
                      .tiles_n = CeilDivide(ElementCount(modes.n), extents.n),
                      .batch_count = ElementCount(modes.batch),
                      .part = std::max<int64_t>(terms, 1)};
    if (splits) {
      const int64_t wanted =
          CeilDivide(kBlocksPerMultiprocessor * model.multiprocessor_count,
                     division.block_count());
      const int64_t count = std::min(
          wanted, std::max<int64_t>(terms / (kLeastDepths * extents.k), 1));
      division.part =
          CeilDivide(CeilDivide(division.part, count), extents.k) * extents.k;
      division.split_count =
          std::max<int64_t>(CeilDivide(terms, division.part), 1);
    }
    const Readings readings = ReadingsOf(problem, modes, tile);
    division.a_along_k = readings.a.along_k;
    division.b_along_k = readings.b.along_k;
    division.nanoseconds = Predict(model, problem, modes, readings, division);
    if (division.nanoseconds < best.nanoseconds) best = division;
  }
  return best;
}

int64_t PartialBytes(const Problem& problem, const Division& division) {
  if (division.split_count == 1) return 0;
  return division.split_count * division.batch_count * ElementCount(problem.m) *
         ElementCount(problem.n) * ArithmeticBytes(problem);
}

}  // namespace tensord::core::cuda
