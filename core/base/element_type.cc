#include "core/base/element_type.h"

#include <array>

#include "absl/strings/string_view.h"

namespace tensord::core {
namespace {

struct Row {
  absl::string_view name;
  int64_t bytes;
};
constexpr std::array<Row, kElementTypeCount> kRows = {{
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
    {"bool", 1},
}};
constexpr std::array<absl::string_view, kComputeTypeCount> kComputeNames = {
    "float16", "bfloat16", "tf32", "3xtf32", "float32", "float64", "integer"};

}  // namespace

int64_t SizeOf(ElementType type) { return kRows[static_cast<int>(type)].bytes; }

absl::string_view NameOf(ElementType type) {
  return kRows[static_cast<int>(type)].name;
}

absl::string_view NameOf(ComputeType type) {
  return kComputeNames[static_cast<int>(type)];
}

std::optional<ElementType> ElementTypeFromName(absl::string_view name) {
  for (int i = 0; i < kElementTypeCount; ++i) {
    if (kRows[i].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

bool IsComplex(ElementType type) {
  return type == ElementType::kComplex64 || type == ElementType::kComplex128;
}

bool IsInteger(ElementType type) { return type >= ElementType::kInt8; }

ElementType RealPartOf(ElementType type) {
  if (type == ElementType::kComplex64) return ElementType::kFloat32;
  if (type == ElementType::kComplex128) return ElementType::kFloat64;
  return type;
}

}  // namespace tensord::core
