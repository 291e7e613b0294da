#include "core/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tensord::core {
namespace {

constexpr size_t kMostAtOnce = size_t{1} << 30;   // isa-l counts by int
constexpr size_t kBlockBytes = size_t{16} << 10;  // stays in the first cache

/// Writes around the caches: lines that are written whole need not be read.
void Stream(std::span<const std::byte> from, std::byte* to) {
#if defined(__SSE2__)
  constexpr size_t kLine = 64;
  const size_t begin =
      std::min(from.size(), -reinterpret_cast<uintptr_t>(to) % kLine);
  std::memcpy(to, from.data(), begin);
  size_t at = begin;
  for (; at + kLine <= from.size(); at += kLine) {
    const auto* const source =
        reinterpret_cast<const __m128i*>(from.data() + at);
    auto* const line = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(line, a);
    _mm_stream_si128(line + 1, b);
    _mm_stream_si128(line + 2, c);
    _mm_stream_si128(line + 3, d);
  }
  std::memcpy(to + at, from.data() + at, from.size() - at);
  _mm_sfence();
#else
  std::memcpy(to, from.data(), from.size());
#endif
}

}  // namespace

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc) {
  // isa-l leaves the inversions before and after to its caller, and its
  // parameter lacks the const that it keeps.
  uint32_t state = ~crc;
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kMostAtOnce));
    state = crc32_iscsi(
        reinterpret_cast<unsigned char*>(const_cast<std::byte*>(part.data())),
        static_cast<int>(part.size()), state);
    bytes = bytes.subspan(part.size());
  }
  return ~state;
}

uint32_t Crc32c(absl::string_view bytes, uint32_t crc) {
  return Crc32c(std::as_bytes(std::span(bytes)), crc);
}

uint32_t CopyWithCrc32c(std::span<const std::byte> from, std::byte* to,
                        uint32_t crc, CopyTo where) {
  while (!from.empty()) {
    const auto block = from.first(std::min(from.size(), kBlockBytes));
    if (where == CopyTo::kMemory) {
      Stream(block, to);
    } else {
      std::memcpy(to, block.data(), block.size());
    }
    crc = Crc32c(block, crc);
    from = from.subspan(block.size());
    to += block.size();
  }
  return crc;
}

}  // namespace tensord::core
