#include "core/notation/characters.h"

#include <utf8proc.h>

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace tensord::core {
namespace {

const utf8proc_property_t& PropertiesOf(char32_t c) {
  return *utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
}

bool IsCombining(char32_t c) {
  const utf8proc_propval_t category = PropertiesOf(c).category;
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool IsContinuation(char byte) {
  return (static_cast<uint8_t>(byte) & 0xc0) == 0x80;
}

}  // namespace

Character CharacterAt(absl::string_view text, size_t offset) {
  utf8proc_int32_t value = 0;
  const utf8proc_ssize_t byte_count = utf8proc_iterate(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data() + offset),
      static_cast<utf8proc_ssize_t>(text.size() - offset), &value);
  if (byte_count <= 0) return {};
  return {static_cast<char32_t>(value), static_cast<size_t>(byte_count)};
}

bool IsLetter(char32_t c) {
  const utf8proc_propval_t category = PropertiesOf(c).category;
  return (category >= UTF8PROC_CATEGORY_LU &&
          category <= UTF8PROC_CATEGORY_LO) ||
         category == UTF8PROC_CATEGORY_NL;
}

bool IsMark(char32_t c) {
  const utf8proc_property_t& properties = PropertiesOf(c);
  switch (properties.category) {
    case UTF8PROC_CATEGORY_ND: return c > 0x7f;
    case UTF8PROC_CATEGORY_NO:
      return properties.decomp_type == UTF8PROC_DECOMP_TYPE_SUPER ||
             properties.decomp_type == UTF8PROC_DECOMP_TYPE_SUB;
    default: return IsCombining(c);
  }
}

bool IsPrime(char32_t c) {
  return c == '\'' || (c >= 0x2032 && c <= 0x2034) || c == 0x2057;
}

bool IsBlank(char32_t c) {
  constexpr char32_t kByteOrderMark = 0xfeff;
  return c == '\t' || c == kByteOrderMark ||
         PropertiesOf(c).category == UTF8PROC_CATEGORY_ZS;
}

bool IsUnprintable(char32_t c) {
  const utf8proc_propval_t category = PropertiesOf(c).category;
  return category == UTF8PROC_CATEGORY_CN || IsCombining(c) ||
         (category >= UTF8PROC_CATEGORY_ZS && c != ' ');
}

std::string Shown(absl::string_view text, size_t offset) {
  const Character c = CharacterAt(text, offset);
  if (c.value == Character::kNotUtf8) {
    return absl::StrCat(
        "byte 0x",
        absl::Hex(static_cast<uint8_t>(text[offset]), absl::kZeroPad2),
        ", which is not UTF-8");
  }
  if (IsUnprintable(c.value)) {
    return absl::StrCat("character U+",
                        absl::Hex(uint32_t{c.value}, absl::kZeroPad4));
  }
  return absl::StrCat("'", text.substr(offset, c.byte_count), "'");
}

std::string Quoted(absl::string_view name) {
  constexpr size_t kLongest = 64;
  if (name.size() > kLongest) {
    size_t length = kLongest;
    while (length > 0 && IsContinuation(name[length])) --length;
    return absl::StrCat("'", name.substr(0, length), "...'");
  }
  // A character's quotes are its own.
  if (!name.empty() && name[0] == '\'') return std::string(name);
  return absl::StrCat("'", name, "'");
}

}  // namespace tensord::core
