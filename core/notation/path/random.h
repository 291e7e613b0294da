// A small generator of random numbers, equal on every platform.
#pragma once

#include <cmath>
#include <cstdint>

namespace tensord::core {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t bits = state_;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  }

  /// In [0, limit). Requires limit > 0.
  int Below(int limit) {
    return static_cast<int>(((Next() >> 32) * static_cast<uint64_t>(limit)) >>
                            32);
  }

  /// In (0, 1).
  double Unit() { return (static_cast<double>(Next() >> 12) + 0.5) * 0x1p-52; }

  /// In (low, high), its logarithm evenly.
  double Between(double low, double high) {
    return low * std::pow(high / low, Unit());
  }

  /// Of Gumbel's distribution.
  double Gumbel() { return -std::log(-std::log(Unit())); }

 private:
  uint64_t state_;
};

}  // namespace tensord::core
