// The characters of a text in UTF-8, and which of them are letters, as Unicode
// has them.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tensord::core {

/// One code point. A byte that does not belong to one is a character of its own
/// with the value kNotUtf8.
struct Character {
  static constexpr char32_t kNotUtf8 = 0xffffffff;

  char32_t value = kNotUtf8;
  size_t byte_count = 1;
};

/// The character whose first byte is text[offset].
///
/// Requires  offset < text.size().
Character CharacterAt(absl::string_view text, size_t offset);

/// A letter of any alphabet, or a numeral that is one.
bool IsLetter(char32_t c);

/// What may follow a letter in a name: a combining mark, a raised or lowered
/// digit, a digit of another script than ASCII's.
bool IsMark(char32_t c);

/// A prime of Unicode, single to quadruple, or the apostrophe.
bool IsPrime(char32_t c);

/// A blank other than the end of a line.
bool IsBlank(char32_t c);

/// Cannot be seen, or not by itself: a control character, a combining mark, a
/// blank but ' ', what Unicode has not assigned.
bool IsUnprintable(char32_t c);

/// A character as messages show it: `'x'`, or its number where it cannot be
/// seen.
std::string Shown(absl::string_view text, size_t offset);

/// A name or label as messages show it: in quotes, cut when it is long.
std::string Quoted(absl::string_view name);

}  // namespace tensord::core
