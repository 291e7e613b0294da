// The checksum of what is kept in files.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tensord::core {

/// CRC-32C (Castagnoli) of `bytes`, or of what `crc` is the checksum of with
/// `bytes` behind it. By tables, so that core needs no library for it.
uint32_t Crc32c(absl::string_view bytes, uint32_t crc = 0);

}  // namespace tensord::core
