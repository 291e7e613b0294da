#include "core/backend/cuda/contraction/tile_efficiency.h"

#include <algorithm>

namespace tensord::core::cuda {
namespace {

// Of the cycles counted, those in which threads do not wait for each other and
// for results: fitted to an H100 (tests/benchmarks/results/2026-11-27-gpu-*).
constexpr double kBusy = 0.69;
// Of deep tiles, which issue little else but loads. A guess.
constexpr double kDeepEfficiency = 0.15;
// For a copy to shared memory and its two addresses, and for a turn of the
// loop: about what the machine code has.
constexpr double kCopyInstructions = 9;
constexpr double kTurnInstructions = 10;
// Of a multiprocessor, in a cycle.
constexpr double kInstructions = 4;
constexpr double kSharedBytes = 128;

constexpr double kWarp = 32;
constexpr double kVectorBytes = 16;

/// Cycles of shared memory in which a warp reads its elements of one term and
/// side: `lanes` of its threads read others, `micro` each.
double SharedCycles(double lanes, double micro, double bytes) {
  return std::max(lanes * micro * bytes / kSharedBytes,
                  micro * bytes / kVectorBytes);
}

}  // namespace

int64_t ArithmeticBytes(ElementType type) {
  return std::max<int64_t>(SizeOf(type), 4);
}

double DirectProductsPerCycle(const GpuModel& model, ElementType type) {
  if (IsInteger(type)) {
    return model.int32_products_per_cycle / (SizeOf(type) == 8 ? 4 : 1);
  }
  const double real = RealPartOf(type) == ElementType::kFloat64
                          ? model.float64_products_per_cycle
                          : model.float32_products_per_cycle;
  return real / (IsComplex(type) ? 4 : 1);
}

double TileEfficiency(const GpuModel& model, ElementType type, DirectTile tile,
                      const DirectReading& a, const DirectReading& b) {
  if (tile == DirectTile::kDeep) return kDeepEfficiency;
  const auto arithmetic_bytes = static_cast<uint32_t>(ArithmeticBytes(type));
  const DirectTileExtents extents = ExtentsOf(tile, arithmetic_bytes);
  const double bytes = arithmetic_bytes;
  const double m = extents.m, n = extents.n, k = extents.k;
  const double threads = ThreadsOf(tile, arithmetic_bytes);
  const double warps = threads / kWarp;

  const double products = m * n * k;
  const double ideal = products / DirectProductsPerCycle(model, type);

  const double together = kVectorBytes / bytes;
  const double copies = m * k / (a.by_vectors ? together : 1) +
                        n * k / (b.by_vectors ? together : 1);
  const double multiply_adds = products / kWarp * (IsComplex(type) ? 4 : 1);
  const double loads =
      k * (extents.micro_m + extents.micro_n) * bytes / kVectorBytes;
  const double issue = (multiply_adds + copies / kWarp * kCopyInstructions +
                        warps * (loads + kTurnInstructions)) /
                       kInstructions;

  const double lanes_m = std::min(kWarp, m / extents.micro_m);
  const double shared =
      warps * k *
          (SharedCycles(lanes_m, extents.micro_m, bytes) +
           SharedCycles(kWarp / lanes_m, extents.micro_n, bytes)) +
      (m + n) * k * bytes / kSharedBytes;

  return kBusy * ideal / std::max({ideal, issue, shared});
}

}  // namespace tensord::core::cuda
