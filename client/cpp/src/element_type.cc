#include "tensord/element_type.h"

#include <array>
#include <bit>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/cpp/src/errors.h"

namespace tensord {
namespace {

struct Row {
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<Row, 13> kRows = {{{"unspecified", 0},
                                        {"float16", 2},
                                        {"bfloat16", 2},
                                        {"float32", 4},
                                        {"float64", 8},
                                        {"complex64", 8},
                                        {"complex128", 16},
                                        {"int8", 1},
                                        {"int16", 2},
                                        {"int32", 4},
                                        {"int64", 8},
                                        {"uint8", 1},
                                        {"bool", 1}}};

const Row& RowOf(ElementType type) {
  const auto index = static_cast<size_t>(type);
  return kRows[index < kRows.size() ? index : 0];
}

/// `value >> shift`, rounded to the nearest, ties to even.
uint32_t RoundedShift(uint32_t value, int shift) {
  const uint32_t half = (1u << (shift - 1)) - 1;
  return (value + half + (value >> shift & 1)) >> shift;
}

}  // namespace

int64_t ElementBytes(ElementType type) { return RowOf(type).bytes; }

std::string_view ToString(ElementType type) { return RowOf(type).name; }

absl::StatusOr<ElementType> ParseElementType(std::string_view name) {
  std::vector<std::string> names;
  for (size_t i = 1; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<ElementType>(i);
    names.emplace_back(kRows[i].name);
  }
  return internal::InvalidArgument(
      "ELEMENT_TYPE_UNKNOWN", "'", absl::string_view(name.data(), name.size()),
      "' is not an element type, wanted one of ", absl::StrJoin(names, ", "));
}

Float16::Float16(float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(word >> 16 & 0x8000);
  const uint32_t magnitude = word & 0x7fffffff;
  if (magnitude > 0x7f800000) {  // NaN: quiet, with what fits of its payload
    bits = sign | 0x7e00 | static_cast<uint16_t>(magnitude >> 13 & 0x1ff);
  } else if (magnitude >= 0x477ff000) {  // rounds to 65536 or more
    bits = sign | 0x7c00;
  } else if (magnitude >= 0x38800000) {  // normal
    bits = sign |
           static_cast<uint16_t>(RoundedShift(magnitude - (112u << 23), 13));
  } else if (magnitude > 0x33000000) {  // subnormal
    const int shift = 126 - static_cast<int>(magnitude >> 23);
    bits = sign | static_cast<uint16_t>(
                      RoundedShift((magnitude & 0x7fffff) | 0x800000, shift));
  } else {
    bits = sign;
  }
}

Float16::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) {  // infinity and NaN
    return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  }
  if (magnitude >= 0x400) {  // normal
    return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  }
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return sign != 0 ? -value : value;
}

Bfloat16::Bfloat16(float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  if ((word & 0x7fffffff) > 0x7f800000) {  // NaN stays one
    bits = static_cast<uint16_t>(word >> 16 | 0x40);
  } else {
    bits = static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
  }
}

Bfloat16::operator float() const {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

}  // namespace tensord
