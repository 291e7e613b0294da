// Small reproducible random numbers for schedules.
#pragma once

#include <cstdint>

namespace tensord::simt {

/// SplitMix64: equal seeds give equal numbers everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t x = state_ += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
  }

  /// A number below `bound`. Requires bound > 0.
  uint64_t Below(uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>(Wide{Next()} * bound >> 64);
  }

 private:
  uint64_t state_;
};

}  // namespace tensord::simt
