#include "core/notation/characters.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tensord::core {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

/// What is no letter beyond ASCII, ascending.
constexpr Range kNoLetters[] = {
    {0x0080, 0x00a9},      // controls, blank, signs of Latin-1
    {0x00ab, 0x00b4},      //
    {0x00b6, 0x00b9},      //
    {0x00bb, 0x00bf},      //
    {0x00d7, 0x00d7},      // multiplication
    {0x00f7, 0x00f7},      // division
    {0x0300, 0x036f},      // combining marks
    {0x037e, 0x037e},      // Greek
    {0x0387, 0x0387},      //
    {0x055a, 0x055f},      // Armenian
    {0x0589, 0x058a},      //
    {0x05be, 0x05be},      // Hebrew
    {0x05c0, 0x05c0},      //
    {0x05c3, 0x05c3},      //
    {0x05f3, 0x05f4},      //
    {0x0600, 0x060f},      // Arabic
    {0x061b, 0x061f},      //
    {0x066a, 0x066d},      //
    {0x06d4, 0x06d4},      //
    {0x0964, 0x0965},      // Devanagari
    {0x0e3f, 0x0e3f},      // Thai
    {0x1680, 0x1680},      // Ogham
    {0x180e, 0x180e},      // Mongolian
    {0x1ab0, 0x1aff},      // combining marks
    {0x1dc0, 0x1dff},      //
    {0x2000, 0x206f},      // general punctuation
    {0x2070, 0x2070},      // raised and lowered digits and signs
    {0x2074, 0x207e},      //
    {0x2080, 0x208e},      //
    {0x20a0, 0x20ff},      // currencies, combining marks for symbols
    {0x2190, 0x2bff},      // arrows, mathematics, boxes, pictures
    {0x2e00, 0x2e7f},      // more punctuation
    {0x3000, 0x3004},      // CJK
    {0x3008, 0x3020},      //
    {0x3030, 0x3030},      //
    {0x30fb, 0x30fb},      //
    {0xd800, 0xf8ff},      // surrogates, private use
    {0xfe00, 0xfe6f},      // variations, marks, presentation forms
    {0xfeff, 0xff0f},      // byte order, wide punctuation
    {0xff1a, 0xff20},      //
    {0xff3b, 0xff40},      //
    {0xff5b, 0xff65},      //
    {0xffe0, 0xffff},      // wide signs, specials
    {0x1f000, 0x1faff},    // pictures
    {0xe0000, 0xffffffff}  // tags, private use, beyond Unicode
};

constexpr Range kRaisedOrLoweredDigits[] = {{0x00b2, 0x00b3},
                                            {0x00b9, 0x00b9},
                                            {0x2070, 0x2070},
                                            {0x2074, 0x2079},
                                            {0x2080, 0x2089}};

constexpr Range kCombining[] = {{0x0300, 0x036f},
                                {0x1ab0, 0x1aff},
                                {0x1dc0, 0x1dff},
                                {0x20d0, 0x20ff},
                                {0xfe20, 0xfe2f}};

constexpr Range kBlanks[] = {
    {0x0009, 0x0009}, {0x0020, 0x0020}, {0x00a0, 0x00a0},
    {0x1680, 0x1680}, {0x2000, 0x200a}, {0x202f, 0x202f},
    {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};

template <size_t count>
bool IsIn(const Range (&ranges)[count], char32_t c) {
  const auto range = std::lower_bound(
      std::begin(ranges), std::end(ranges), c,
      [](const Range& r, char32_t value) { return r.last < value; });
  return range != std::end(ranges) && range->first <= c;
}

bool IsContinuation(char byte) {
  return (static_cast<uint8_t>(byte) & 0xc0) == 0x80;
}

}  // namespace

Character CharacterAt(absl::string_view text, size_t offset) {
  const auto first = static_cast<uint8_t>(text[offset]);
  if (first < 0x80) return {first, 1};
  size_t byte_count = 0;
  char32_t value = 0;
  char32_t lowest = 0;  // shorter encodings exist below
  if ((first & 0xe0) == 0xc0) {
    byte_count = 2, value = first & 0x1f, lowest = 0x80;
  } else if ((first & 0xf0) == 0xe0) {
    byte_count = 3, value = first & 0x0f, lowest = 0x800;
  } else if ((first & 0xf8) == 0xf0) {
    byte_count = 4, value = first & 0x07, lowest = 0x10000;
  }
  if (byte_count == 0 || text.size() - offset < byte_count) return {};
  for (size_t i = 1; i < byte_count; ++i) {
    const char byte = text[offset + i];
    if (!IsContinuation(byte)) return {};
    value = value << 6 | (static_cast<uint8_t>(byte) & 0x3f);
  }
  const bool is_surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < lowest || value > 0x10ffff || is_surrogate) return {};
  return {value, byte_count};
}

bool IsLetter(char32_t c) {
  if (c < 0x80) return absl::ascii_isalpha(static_cast<unsigned char>(c));
  return !IsIn(kNoLetters, c);
}

bool IsMark(char32_t c) {
  return IsIn(kCombining, c) || IsIn(kRaisedOrLoweredDigits, c);
}

bool IsPrime(char32_t c) {
  return c == '\'' || (c >= 0x2032 && c <= 0x2034) || c == 0x2057;
}

bool IsBlank(char32_t c) { return IsIn(kBlanks, c); }

bool IsUnprintable(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
         (c >= 0xd800 && c <= 0xf8ff) || (c >= 0xfe00 && c <= 0xfe0f) ||
         (c >= 0xfff0 && c <= 0xffff) || c >= 0xe0000 || IsIn(kCombining, c) ||
         (IsBlank(c) && c != ' ');
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
