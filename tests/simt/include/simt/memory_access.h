// Loads and stores with a hint for the caches. The hint does nothing here;
// that the address is aligned for the type is checked.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "simt/threads.h"

namespace tensord::simt {

/// Reports a misaligned access; does not return.
[[noreturn]] void Misaligned(const void* address, size_t alignment,
                             Location where);

inline void CheckAligned(const void* address, size_t alignment,
                         Location where) {
  if (reinterpret_cast<uintptr_t>(address) % alignment != 0) {
    Misaligned(address, alignment, where);
  }
}

template <typename T, typename... Ts>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Ts> || ...);

/// The types that CUDA's functions below take.
template <typename T>
concept CacheOperand =
    (std::is_arithmetic_v<T> && !kIsOneOf<T, bool, wchar_t, long double>) ||
    kIsOneOf<T, int2, int4, uint2, uint4, float2, float4, double2>;

template <CacheOperand T>
T Load(const T* address, Location where) {
  CheckAligned(address, sizeof(T), where);
  return *address;
}

template <CacheOperand T>
void Store(T* address, const T& value, Location where) {
  CheckAligned(address, sizeof(T), where);
  *address = value;
}

}  // namespace tensord::simt

#define TENSORD_SIMT_LOAD(Function)                  \
  template <typename T>                              \
  T Function(const T* address, TENSORD_SIMT_WHERE) { \
    return ::tensord::simt::Load(address, where);    \
  }
TENSORD_SIMT_LOAD(__ldg)
TENSORD_SIMT_LOAD(__ldcs)
TENSORD_SIMT_LOAD(__ldcg)
#undef TENSORD_SIMT_LOAD

#define TENSORD_SIMT_STORE(Function)                       \
  template <typename T>                                    \
  void Function(T* address, std::type_identity_t<T> value, \
                TENSORD_SIMT_WHERE) {                      \
    ::tensord::simt::Store(address, value, where);         \
  }
TENSORD_SIMT_STORE(__stwb)
TENSORD_SIMT_STORE(__stcs)
TENSORD_SIMT_STORE(__stcg)
TENSORD_SIMT_STORE(__stwt)
#undef TENSORD_SIMT_STORE
