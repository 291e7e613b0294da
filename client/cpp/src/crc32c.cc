#include "client/cpp/src/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstring>

namespace tensord::internal {

uint32_t Crc32c(std::span<const std::byte> bytes) {
  return ExtendCrc32c(0, bytes);
}

uint32_t ExtendCrc32c(uint32_t crc32c, std::span<const std::byte> bytes) {
  constexpr size_t kMostAtOnce = size_t{1} << 30;  // The length is an int.
  // The library leaves the inversions before and after to its caller.
  uint32_t crc = ~crc32c;
  while (!bytes.empty()) {
    const size_t size = std::min(bytes.size(), kMostAtOnce);
    // It reads only; the parameter merely lacks its const.
    auto* data =
        reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(size), crc);
    bytes = bytes.subspan(size);
  }
  return ~crc;
}

uint32_t CopyAndExtendCrc32c(uint32_t crc32c, std::span<const std::byte> from,
                             std::byte* to) {
  constexpr size_t kBlockBytes = 16 << 10;  // Stays in the first cache.
  while (!from.empty()) {
    const auto block = from.first(std::min(from.size(), kBlockBytes));
    std::memcpy(to, block.data(), block.size());
    crc32c = ExtendCrc32c(crc32c, block);
    from = from.subspan(block.size());
    to += block.size();
  }
  return crc32c;
}

}  // namespace tensord::internal
