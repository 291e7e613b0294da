// Characters as bytes.
#pragma once

#include <string>

namespace tensord::core::test {

/// UTF-8 by its definition.
inline std::string Encoded(char32_t c) {
  const auto tail = [&](int shift) {
    return static_cast<char>(0x80 | (c >> shift & 0x3f));
  };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xc0 | c >> 6), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xe0 | c >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | c >> 18), tail(12), tail(6), tail(0)};
}

}  // namespace tensord::core::test
