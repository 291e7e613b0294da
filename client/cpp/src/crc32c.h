// The checksum of transfers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tensord::internal {

/// CRC-32C (Castagnoli) of `bytes`, as RFC 3720 has it: Crc32c("123456789") is
/// 0xE3069283 and Crc32c("") is 0.
uint32_t Crc32c(std::span<const std::byte> bytes);

/// The same while it grows. `crc32c` is that of the bytes before; returns that
/// of all.
uint32_t ExtendCrc32c(uint32_t crc32c, std::span<const std::byte> bytes);

/// Copies `from` to `to` and extends `crc32c` by it, with one pass through
/// memory.
uint32_t CopyAndExtendCrc32c(uint32_t crc32c, std::span<const std::byte> from,
                             std::byte* to);

}  // namespace tensord::internal
