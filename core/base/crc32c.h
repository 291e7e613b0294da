// The checksum of chunks and of files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/strings/string_view.h"

namespace tensord::core {

/// CRC-32C (Castagnoli) of `bytes`, as RFC 3720 has it. `crc` is that of what
/// comes before them.
uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);
uint32_t Crc32c(absl::string_view bytes, uint32_t crc = 0);

/// Where a copy is to be.
enum class CopyTo {
  kCache,   // it is read soon
  kMemory,  // it is a part of what no cache holds: twice as fast there
};

/// Copies `from` to `to` and returns Crc32c(from, crc), in one pass through
/// memory.
uint32_t CopyWithCrc32c(std::span<const std::byte> from, std::byte* to,
                        uint32_t crc = 0, CopyTo where = CopyTo::kCache);

}  // namespace tensord::core
