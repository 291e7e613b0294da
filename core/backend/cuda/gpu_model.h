// What cost models know of a GPU.
#pragma once

#include <cstdint>

namespace tensord::core::cuda {

/// Threads  immutable value; share freely.
struct GpuModel {
  int32_t multiprocessor_count = 1;
  int64_t shared_bytes_per_block = 48 << 10;  // that a block may ask for
  double copy_bytes_per_ns = 1;               // read and written together
  double launch_ns = 2500;                    // from one kernel to the next
};

/// Bytes that a run of `bytes` neighbours costs: memory moves in sectors of 32.
inline double SectorBytes(double bytes) {
  constexpr double kSector = 32;
  const auto sectors = static_cast<int64_t>((bytes + kSector - 1) / kSector);
  return kSector * static_cast<double>(sectors > 0 ? sectors : 1);
}

}  // namespace tensord::core::cuda
