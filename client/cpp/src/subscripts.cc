#include "client/cpp/src/subscripts.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/src/errors.h"

namespace tensord {
namespace internal {
namespace {

/// The code points of a text in UTF-8.
std::u32string CodePoints(std::string_view text) {
  std::u32string points;
  for (const char byte : text) {
    const auto bits = static_cast<unsigned char>(byte);
    // 0 of ASCII, 1 of a byte that goes on with a code point.
    const int ones = std::countl_one(bits);
    const char32_t value = bits & (0x7f >> ones);
    if (ones == 1 && !points.empty()) {
      points.back() = points.back() << 6 | value;
    } else {
      points.push_back(value);
    }
  }
  return points;
}

/// Whether einsum takes it for a label.
bool IsLabel(char32_t c) {
  constexpr std::u32string_view kLettersOfLatin1 = U"\u00aa\u00b5\u00ba";
  if (c < 0x80) return absl::ascii_isalpha(static_cast<unsigned char>(c));
  return c >= 0xc0 || kLettersOfLatin1.find(c) != std::u32string_view::npos;
}

std::string Shown(char32_t c) {
  const auto byte = static_cast<unsigned char>(c);
  if (c < 0x80 && absl::ascii_isprint(byte)) {
    return {'\'', static_cast<char>(c), '\''};
  }
  return absl::StrCat("U+", absl::Hex(c, absl::kZeroPad4));
}

}  // namespace

absl::StatusOr<std::vector<std::vector<Modes>>> ParseSubscripts(
    std::string_view subscripts) {
  const std::u32string text = CodePoints(subscripts);
  std::vector<std::vector<Modes>> sides(1, std::vector<Modes>(1));
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, U"->") == 0) {
      sides.emplace_back(1);
      ++i;
    } else if (text[i] == ',') {
      sides.back().emplace_back();
    } else if (IsLabel(text[i])) {
      sides.back().back().labels.push_back(static_cast<int32_t>(text[i]));
    } else if (text[i] != ' ') {
      return InvalidArgument("SUBSCRIPTS_MALFORMED", "column ", i + 1, ": got ",
                             Shown(text[i]), ", wanted letters, ',' and '->'");
    }
  }
  return sides;
}

absl::StatusOr<FactorModes> ParseFactorModes(std::string_view subscripts) {
  TENSORD_CLIENT_ASSIGN_OR_RETURN(auto sides, ParseSubscripts(subscripts));
  if (sides.size() != 2 || sides[0].size() != 1) {
    return InvalidArgument("SUBSCRIPTS_MALFORMED", "subscripts are '",
                           std::string(subscripts),
                           "', wanted one operand, '->' and results, as in "
                           "'abcd->abk,kcd'");
  }
  return FactorModes{std::move(sides[0][0]), std::move(sides[1])};
}

}  // namespace internal

Modes::Modes(std::string_view characters) {
  for (const char32_t point : internal::CodePoints(characters)) {
    labels.push_back(static_cast<int32_t>(point));
  }
}

}  // namespace tensord
