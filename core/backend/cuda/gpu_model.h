// What cost models know of a GPU.
#pragma once

#include <cstdint>

namespace tensord::core::cuda {

/// Parameters of the cycle model (cycle_model.h), in cycles.
struct CycleParameters {
  double departure = 2;       // delay between transactions of a warp
  double base_latency = 600;  // of one transaction
  double shared_latency = 1;  // of shared memory, a request
  double arithmetic = 260;    // per turn

  bool operator==(const CycleParameters&) const = default;
};

/// Those of a compute capability. The first three are table I of cuTT; those of
/// 8.0 and later are first guesses, not fitted to measurements yet.
struct ArchitectureCycles {
  int least_major;
  CycleParameters parameters;
};
inline constexpr ArchitectureCycles kArchitectureCycles[] = {
    {3, {14, 358, 11, 50}},   // Kepler
    {5, {2.5, 385, 1, 220}},  // Maxwell
    {6, {2.8, 485, 1, 260}},  // Pascal
    {8, {2.2, 470, 1, 260}},  // Ampere
    {9, {1.8, 560, 1, 260}},  // Hopper
};

/// The parameters of the latest architecture that is not later than `major`.
/// Requires  major >= 3.
constexpr CycleParameters CyclesOf(int major) {
  CycleParameters parameters;
  for (const ArchitectureCycles& entry : kArchitectureCycles) {
    if (entry.least_major <= major) parameters = entry.parameters;
  }
  return parameters;
}

/// What a multiprocessor multiplies and adds in a cycle.
/// Source  the arithmetic throughput table of NVIDIA's CUDA programming guide
///         and, of tensor cores, its whitepapers on A100, GA102 and H100.
struct ArchitectureProducts {
  int least_major;
  bool is_data_center;
  double float32, float64;
  double tensor_float16, tensor_tf32, tensor_float64;
};
inline constexpr ArchitectureProducts kArchitectureProducts[] = {
    {8, true, 64, 32, 1024, 512, 64},     // 8.0
    {8, false, 128, 2, 512, 256, 2},      // 8.6, 8.9
    {9, true, 128, 64, 2048, 1024, 128},  // 9.0 and later
    {9, false, 128, 2, 512, 256, 2},      // 12.0
};

/// Those of the latest architecture of its kind that is not later than `major`.
/// Requires  major >= 8.
constexpr ArchitectureProducts ProductsOf(int major, bool is_data_center) {
  ArchitectureProducts products = {};
  for (const ArchitectureProducts& entry : kArchitectureProducts) {
    if (entry.least_major <= major && entry.is_data_center == is_data_center) {
      products = entry;
    }
  }
  return products;
}

/// Threads  immutable value; share freely.
struct GpuModel {
  int32_t multiprocessor_count = 1;
  int64_t shared_bytes_per_multiprocessor = 100 << 10;
  double memory_bytes_per_ns = 1;  // at most, read and written together
  double clock_ghz = 1;
  // Products with addition, of a multiprocessor.
  double float32_products_per_cycle = 128;
  double float64_products_per_cycle = 64;
  double int32_products_per_cycle = 64;
  double tensor_float16_products_per_cycle = 1024;  // bfloat16, too
  double tensor_tf32_products_per_cycle = 512;
  double tensor_float64_products_per_cycle = 64;
  double launch_ns = 2500;  // from one kernel to the next
  CycleParameters cycles;

  /// What a copy reaches of the memory's bandwidth.
  double copy_bytes_per_ns() const { return 0.9 * memory_bytes_per_ns; }
};

/// Bytes that a run of `bytes` neighbours costs: memory moves in sectors of 32.
inline double SectorBytes(double bytes) {
  constexpr double kSector = 32;
  const auto sectors = static_cast<int64_t>((bytes + kSector - 1) / kSector);
  return kSector * static_cast<double>(sectors > 0 ? sectors : 1);
}

}  // namespace tensord::core::cuda
