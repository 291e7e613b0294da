#include "core/base/crc32c.h"

#include <array>

namespace tensord::core {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // bits reversed

/// [i][byte]: what `byte` does to the checksum when i bytes follow it.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables MakeTables() {
  Tables tables = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    }
    tables[0][byte] = crc;
  }
  for (size_t i = 1; i < tables.size(); ++i) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t crc = tables[i - 1][byte];
      tables[i][byte] = crc >> 8 ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

}  // namespace

uint32_t Crc32c(absl::string_view bytes, uint32_t crc) {
  crc = ~crc;
  const auto* next = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, next += 8) {
    const uint32_t low =
        crc ^ (uint32_t{next[0]} | uint32_t{next[1]} << 8 |
               uint32_t{next[2]} << 16 | uint32_t{next[3]} << 24);
    crc = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^
          kTables[5][low >> 16 & 0xff] ^ kTables[4][low >> 24] ^
          kTables[3][next[4]] ^ kTables[2][next[5]] ^ kTables[1][next[6]] ^
          kTables[0][next[7]];
  }
  for (; left > 0; --left, ++next) {
    crc = crc >> 8 ^ kTables[0][(crc ^ *next) & 0xff];
  }
  return ~crc;
}

}  // namespace tensord::core
