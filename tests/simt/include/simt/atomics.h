// CUDA's atomic operations. They order nothing else, as on the device: what is
// to be seen by who sees the result needs __threadfence() first (only builds
// with ThreadSanitizer tell).
#pragma once

#include <type_traits>

#include "simt/memory_access.h"

namespace tensord::simt {

/// Tell the race checker what an atomic operation at `address` orders.
void BeforeAtomic(void* address);
void AfterAtomic(void* address);

/// Replaces *address by change(*address); returns the old value.
template <typename T, typename Change>
T AtomicUpdate(T* address, Change change, Location where) {
  CheckAligned(address, sizeof(T), where);
  using Bits = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned>;
  static_assert(sizeof(T) == sizeof(Bits));
  auto* const cell = reinterpret_cast<Bits*>(address);
  BeforeAtomic(address);
  Bits old_bits = __atomic_load_n(cell, __ATOMIC_RELAXED);
  T old_value;
  Bits new_bits;
  do {
    std::memcpy(&old_value, &old_bits, sizeof(T));
    const T new_value = change(old_value);
    std::memcpy(&new_bits, &new_value, sizeof(T));
  } while (!__atomic_compare_exchange_n(cell, &old_bits, new_bits, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  AfterAtomic(address);
  return old_value;
}

/// Sums of signed integers wrap.
template <typename T>
T WrappingSum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

}  // namespace tensord::simt

#define TENSORD_SIMT_ATOMIC(Function, T, new_value)                           \
  inline T Function(T* address, T val, TENSORD_SIMT_WHERE) {                  \
    return ::tensord::simt::AtomicUpdate(                                     \
        address, [val]([[maybe_unused]] T old) { return new_value; }, where); \
  }

TENSORD_SIMT_ATOMIC(atomicAdd, int, ::tensord::simt::WrappingSum(old, val))
TENSORD_SIMT_ATOMIC(atomicAdd, unsigned, old + val)
TENSORD_SIMT_ATOMIC(atomicAdd, unsigned long long, old + val)
TENSORD_SIMT_ATOMIC(atomicAdd, float, old + val)
TENSORD_SIMT_ATOMIC(atomicAdd, double, old + val)

#define TENSORD_SIMT_ATOMIC_ORDERED(T)                     \
  TENSORD_SIMT_ATOMIC(atomicMin, T, val < old ? val : old) \
  TENSORD_SIMT_ATOMIC(atomicMax, T, old < val ? val : old)
TENSORD_SIMT_ATOMIC_ORDERED(int)
TENSORD_SIMT_ATOMIC_ORDERED(unsigned)
TENSORD_SIMT_ATOMIC_ORDERED(long long)
TENSORD_SIMT_ATOMIC_ORDERED(unsigned long long)
#undef TENSORD_SIMT_ATOMIC_ORDERED

TENSORD_SIMT_ATOMIC(atomicExch, int, val)
TENSORD_SIMT_ATOMIC(atomicExch, unsigned, val)
TENSORD_SIMT_ATOMIC(atomicExch, unsigned long long, val)
TENSORD_SIMT_ATOMIC(atomicExch, float, val)
TENSORD_SIMT_ATOMIC(atomicInc, unsigned, old >= val ? 0u : old + 1)
#undef TENSORD_SIMT_ATOMIC

#define TENSORD_SIMT_ATOMIC_CAS(T)                                          \
  inline T atomicCAS(T* address, T compare, T val, TENSORD_SIMT_WHERE) {    \
    return ::tensord::simt::AtomicUpdate(                                   \
        address, [=](T old) { return old == compare ? val : old; }, where); \
  }
TENSORD_SIMT_ATOMIC_CAS(int)
TENSORD_SIMT_ATOMIC_CAS(unsigned)
TENSORD_SIMT_ATOMIC_CAS(unsigned long long)
#undef TENSORD_SIMT_ATOMIC_CAS
