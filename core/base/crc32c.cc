#include "core/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <cstring>

namespace tensord::core {
namespace {

constexpr size_t kMostAtOnce = size_t{1} << 30;   // isa-l counts by int
constexpr size_t kBlockBytes = size_t{16} << 10;  // stays in the first cache

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
                        uint32_t crc) {
  while (!from.empty()) {
    const auto block = from.first(std::min(from.size(), kBlockBytes));
    std::memcpy(to, block.data(), block.size());
    crc = Crc32c(block, crc);
    from = from.subspan(block.size());
    to += block.size();
  }
  return crc;
}

}  // namespace tensord::core
