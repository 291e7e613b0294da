// What the lanes of a warp do together: exchange, vote, synchronise.
//
// Errors  reports, and does not return: a lane outside its own mask; lanes of
//         one mask at different places or with different masks; a width that
//         is no power of two up to 32.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "simt/threads.h"

namespace tensord::simt {

enum class Collective { kSync, kBallot, kExchange };

/// Waits for the lanes of `mask` that have not ended. kBallot returns which
/// lanes gave an odd value; kExchange the value of `source_lane`, or a pattern
/// of junk when that lane takes no part.
uint64_t WarpCollective(Collective collective, unsigned mask, uint64_t value,
                        int source_lane, Location where);

/// The calling thread's place in its warp, once `width` is checked.
int LaneOfWidth(int width, Location where);

template <typename T>
T Exchange(unsigned mask, T value, int source_lane, Location where) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  return std::bit_cast<T>(static_cast<Bits>(
      WarpCollective(Collective::kExchange, mask, std::bit_cast<Bits>(value),
                     source_lane, where)));
}

template <typename T>
T Shuffle(unsigned mask, T value, int lane, int width, Location where) {
  const int first = LaneOfWidth(width, where) & ~(width - 1);
  return Exchange(mask, value, first + (lane & (width - 1)), where);
}

template <typename T>
T ShuffleUp(unsigned mask, T value, unsigned delta, int width, Location where) {
  const int self = LaneOfWidth(width, where);
  const int place = self & (width - 1);
  const bool inside = delta <= static_cast<unsigned>(place);
  return Exchange(mask, value, inside ? self - static_cast<int>(delta) : self,
                  where);
}

template <typename T>
T ShuffleDown(unsigned mask, T value, unsigned delta, int width,
              Location where) {
  const int self = LaneOfWidth(width, where);
  const int place = self & (width - 1);
  const bool inside = delta < static_cast<unsigned>(width - place);
  return Exchange(mask, value, inside ? self + static_cast<int>(delta) : self,
                  where);
}

template <typename T>
T ShuffleXor(unsigned mask, T value, int lane_mask, int width, Location where) {
  const int self = LaneOfWidth(width, where);
  const int end = (self & ~(width - 1)) + width;
  const int other = self ^ lane_mask;
  return Exchange(mask, value, other < end ? other : self, where);
}

}  // namespace tensord::simt

// CUDA's overloads: no smaller integers, which therefore promote to int.
#define TENSORD_SIMT_SHUFFLES(T)                                               \
  inline T __shfl_sync(unsigned mask, T var, int srcLane, int width = 32,      \
                       TENSORD_SIMT_WHERE) {                                   \
    return ::tensord::simt::Shuffle(mask, var, srcLane, width, where);         \
  }                                                                            \
  inline T __shfl_up_sync(unsigned mask, T var, unsigned delta,                \
                          int width = 32, TENSORD_SIMT_WHERE) {                \
    return ::tensord::simt::ShuffleUp(mask, var, delta, width, where);         \
  }                                                                            \
  inline T __shfl_down_sync(unsigned mask, T var, unsigned delta,              \
                            int width = 32, TENSORD_SIMT_WHERE) {              \
    return ::tensord::simt::ShuffleDown(mask, var, delta, width, where);       \
  }                                                                            \
  inline T __shfl_xor_sync(unsigned mask, T var, int laneMask, int width = 32, \
                           TENSORD_SIMT_WHERE) {                               \
    return ::tensord::simt::ShuffleXor(mask, var, laneMask, width, where);     \
  }

TENSORD_SIMT_SHUFFLES(int)
TENSORD_SIMT_SHUFFLES(unsigned)
TENSORD_SIMT_SHUFFLES(long)
TENSORD_SIMT_SHUFFLES(unsigned long)
TENSORD_SIMT_SHUFFLES(long long)
TENSORD_SIMT_SHUFFLES(unsigned long long)
TENSORD_SIMT_SHUFFLES(float)
TENSORD_SIMT_SHUFFLES(double)
#undef TENSORD_SIMT_SHUFFLES

inline void __syncwarp(unsigned mask = 0xffffffffu, TENSORD_SIMT_WHERE) {
  ::tensord::simt::WarpCollective(::tensord::simt::Collective::kSync, mask, 0,
                                  0, where);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              TENSORD_SIMT_WHERE) {
  return static_cast<unsigned>(::tensord::simt::WarpCollective(
      ::tensord::simt::Collective::kBallot, mask, predicate != 0, 0, where));
}
inline int __any_sync(unsigned mask, int predicate, TENSORD_SIMT_WHERE) {
  return __ballot_sync(mask, predicate, where) != 0;
}
inline int __all_sync(unsigned mask, int predicate, TENSORD_SIMT_WHERE) {
  return __ballot_sync(mask, predicate == 0, where) == 0;
}
