// Counting through modes in device code: division by multiplication, and the
// addresses that a linear index stands for.
//
// Plain C++ on the host, where spaces are made; device code includes
// index_space.cuh.
#pragma once

#include <array>
#include <cstdint>

namespace tensord::core::cuda {

/// Divides numbers below 2^31 by a divisor that is known beforehand: with
/// s = ceil(log2 d) and m = floor(2^32 (2^s - d) / d) + 1,
/// n / d = (floor(m n / 2^32) + n) >> s.
/// Source  T. Granlund, P. Montgomery, "Division by invariant integers using
///         multiplication" (1994), figure 4.1.
struct FastDivisor {
  FastDivisor() = default;
  /// Requires  1 <= divisor < 2^31.
  explicit FastDivisor(uint32_t divisor) : divisor(divisor) {
    while ((uint64_t{1} << shift) < divisor) ++shift;
    multiplier = static_cast<uint32_t>(
        ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - divisor)) / divisor +
        1);
  }

  uint32_t divisor = 1;
  uint32_t multiplier = 1;
  uint32_t shift = 0;
};

inline constexpr int kMaxModes = 64;
inline constexpr int64_t kMaxIndex = (int64_t{1} << 31) - 1;
/// Most elements of one part. Groups may begin before a run or end behind it,
/// and those places are indices, too.
inline constexpr int64_t kMaxPart = kMaxIndex - 63;

/// Modes in the order in which a linear index counts, fastest first, for
/// `operand_count` operands.
///
/// Units      strides count elements.
/// Invariant  the product of the extents is at most kMaxIndex, and there are at
///            most `mode_limit` modes.
template <int operand_count, int mode_limit = kMaxModes>
struct IndexSpace {
  struct Mode {
    FastDivisor extent;
    FastDivisor before;  // the product of the extents before this one
    int64_t strides[operand_count];
  };

  void Add(int64_t extent, const std::array<int64_t, operand_count>& strides) {
    Mode& mode = modes[mode_count++];
    mode.extent = FastDivisor(static_cast<uint32_t>(extent));
    mode.before = FastDivisor(static_cast<uint32_t>(count));
    for (int i = 0; i < operand_count; ++i) mode.strides[i] = strides[i];
    count *= static_cast<uint32_t>(extent);
  }

  /// Adds `all` of the modes, each with its extent and strides.
  template <typename AllModes>
  void AddAll(const AllModes& all) {
    for (const auto& [extent, strides] : all) Add(extent, strides);
  }

  /// The offsets of the `index`-th element; device code has faster ways.
  std::array<int64_t, operand_count> At(int64_t index) const {
    std::array<int64_t, operand_count> offsets = {};
    for (int m = 0; m < mode_count; ++m) {
      const int64_t extent = modes[m].extent.divisor;
      for (int i = 0; i < operand_count; ++i) {
        offsets[i] += index % extent * modes[m].strides[i];
      }
      index /= extent;
    }
    return offsets;
  }

  int mode_count = 0;
  uint32_t count = 1;  // product of the extents
  Mode modes[mode_limit];
};

/// The same for any count, at the price of divisions.
template <int operand_count, int mode_limit = kMaxModes>
struct Loops {
  struct Mode {
    int64_t extent;
    int64_t strides[operand_count];
  };

  void Add(int64_t extent, const std::array<int64_t, operand_count>& strides) {
    Mode& mode = modes[mode_count++];
    mode.extent = extent;
    for (int i = 0; i < operand_count; ++i) mode.strides[i] = strides[i];
    count *= extent;
  }

  template <typename AllModes>
  void AddAll(const AllModes& all) {
    for (const auto& [extent, strides] : all) Add(extent, strides);
  }

  int mode_count = 0;
  int64_t count = 1;  // product of the extents
  Mode modes[mode_limit];
};

}  // namespace tensord::core::cuda
