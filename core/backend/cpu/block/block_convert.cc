#include "core/backend/cpu/block/block_convert.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "core/backend/cpu/block/block_simd.h"
#include "core/backend/cpu/block/element_math.h"
#include "core/backend/cpu/block/transpose_block.h"

namespace tensord::core {
namespace {

/// Strided elements are gathered this many at a time.
constexpr int64_t kGatherCount = 256;
constexpr int64_t kMemcpyBytes = 1024;

template <typename To, typename From>
constexpr bool kHasSimd = requires(const From* from, To* to) {
  ConvertBlock(from, to, int64_t{});
};

template <typename To, typename From>
void ConvertRun(const From* from, To* to, int64_t count) {
  if constexpr (std::is_same_v<To, From>) {
    // A call of memcpy() costs less at first, but more for each byte.
    const int64_t bytes = count * static_cast<int64_t>(sizeof(To));
    if (bytes <= kMemcpyBytes) {
      std::memcpy(static_cast<void*>(to), from, bytes);
      return;
    }
    CopyRows({.a = reinterpret_cast<const std::byte*>(from),
              .d = reinterpret_cast<std::byte*>(to),
              .rows = 1,
              .columns = bytes,
              .a_row_bytes = 0,
              .d_row_bytes = 0},
             Stores::kCached, 0);
  } else if constexpr (std::is_same_v<From, bool>) {
    // Any byte but 0 is true; reading it as bool would be undefined.
    const auto* const bytes = reinterpret_cast<const uint8_t*>(from);
    for (int64_t i = 0; i < count; ++i) {
      to[i] = ConvertElement<To>(bytes[i] != 0);
    }
  } else if constexpr (kHasSimd<To, From>) {
    ConvertBlock(from, to, count);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = ConvertElement<To>(from[i]);
  }
}

template <typename T>
void Gather(const T* from, int64_t stride, int64_t count, T* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
}

template <typename T, typename Stored>
void Load(const void* source, int64_t stride, int64_t count, void* block) {
  const auto* from = static_cast<const Stored*>(source);
  auto* to = static_cast<T*>(block);
  if (stride == 1) {
    ConvertRun(from, to, count);
  } else if (stride == 0) {
    std::fill_n(to, count, ConvertElement<T>(*from));
  } else if constexpr (std::is_same_v<T, Stored>) {
    Gather(from, stride, count, to);
  } else {
    for (int64_t at = 0; at < count; at += kGatherCount) {
      Stored gathered[kGatherCount];
      const int64_t part = std::min(kGatherCount, count - at);
      Gather(from + at * stride, stride, part, gathered);
      ConvertRun(gathered, to + at, part);
    }
  }
}

template <typename T, typename Stored>
void Store(const void* block, int64_t count, void* target, int64_t stride) {
  const auto* from = static_cast<const T*>(block);
  auto* to = static_cast<Stored*>(target);
  if (stride == 1) {
    ConvertRun(from, to, count);
    return;
  }
  for (int64_t at = 0; at < count; at += kGatherCount) {
    Stored converted[kGatherCount];
    const int64_t part = std::min(kGatherCount, count - at);
    ConvertRun(from + at, converted, part);
    for (int64_t i = 0; i < part; ++i) to[(at + i) * stride] = converted[i];
  }
}

}  // namespace

LoadBlock FindLoad(ElementType stored, ElementType element) {
  return VisitElementType(stored, [&](auto from) {
    using From = decltype(from);
    return VisitComputeElement(element, [](auto to) -> LoadBlock {
      if constexpr (kConverts<decltype(to), From>) {
        return Load<decltype(to), From>;
      } else {
        return nullptr;
      }
    });
  });
}

StoreBlock FindStore(ElementType element, ElementType stored) {
  return VisitElementType(stored, [&](auto to) {
    using To = decltype(to);
    return VisitComputeElement(element, [](auto from) -> StoreBlock {
      if constexpr (kConverts<To, decltype(from)>) {
        return Store<decltype(from), To>;
      } else {
        return nullptr;
      }
    });
  });
}

}  // namespace tensord::core
