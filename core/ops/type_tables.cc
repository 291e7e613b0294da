#include "core/ops/type_tables.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

constexpr auto kF16 = ElementType::kFloat16;
constexpr auto kBf16 = ElementType::kBfloat16;
constexpr auto kF32 = ElementType::kFloat32;
constexpr auto kF64 = ElementType::kFloat64;
constexpr auto kC64 = ElementType::kComplex64;
constexpr auto kC128 = ElementType::kComplex128;
using enum ComputeType;

auto Columns(const PermutationTypes& t) { return std::tuple(t.a, t.d); }
auto Columns(const ElementwiseTypes& t) { return std::tuple(t.a, t.b, t.c); }
auto Columns(const ReductionTypes& t) { return std::tuple(t.a, t.c); }
auto Columns(const ContractionTypes& t) { return std::tuple(t.a, t.b, t.c); }

template <typename Types>
Types SameType(ElementType type) {
  if constexpr (requires(Types t) { t.b; }) {
    return {type, type, type, kInteger};
  } else {
    return {type, type, kInteger};
  }
}

template <typename Types>
std::vector<Types> WithIntegers(std::initializer_list<Types> rows) {
  std::vector<Types> table(rows);
  for (int i = 0; i < kElementTypeCount; ++i) {
    const auto type = static_cast<ElementType>(i);
    if (IsInteger(type)) table.push_back(SameType<Types>(type));
  }
  return table;
}

template <typename Types>
std::string ToString(const Types& types) {
  return std::apply(
      [&](auto... element_types) {
        return absl::StrCat(
            "(", absl::StrJoin({std::string(NameOf(element_types))...}, ", "),
            ") in ", std::string(NameOf(types.compute)));
      },
      Columns(types));
}

template <typename Types>
int Differences(const Types& x, const Types& y) {
  const auto of_columns = [](auto... equal) { return (0 + ... + !equal); };
  return (x.compute != y.compute) +
         std::apply(
             [&](auto... xs) {
               return std::apply(
                   [&](auto... ys) { return of_columns((xs == ys)...); },
                   Columns(y));
             },
             Columns(x));
}

template <typename Types>
absl::Status ValidateTypes(std::span<const Types> table, const Types& types,
                           absl::string_view operation,
                           absl::string_view columns) {
  int fewest = 100;
  for (const Types& row : table) {
    fewest = std::min(fewest, Differences(row, types));
  }
  if (fewest == 0) return absl::OkStatus();
  std::vector<std::string> nearest;
  for (const Types& row : table) {
    if (Differences(row, types) == fewest && nearest.size() < 4) {
      nearest.push_back(ToString(row));
    }
  }
  return Unimplemented(
      "TYPES_NOT_SUPPORTED", operation, " of ", columns, " = ", ToString(types),
      " is not supported; nearest: ", absl::StrJoin(nearest, "; "));
}

/// Binary digits that the magnitude of any value of an integer type, or those
/// integers that a floating-point type all holds, may have.
int DigitsOf(ElementType type) {
  switch (type) {
    case ElementType::kBool: return 1;
    case ElementType::kInt8: return 7;
    case ElementType::kUint8: return 8;
    case ElementType::kInt16: return 15;
    case ElementType::kInt32: return 31;
    case ElementType::kInt64: return 63;
    case kF32:
    case kC64: return 24;
    // As NumPy has it, though not every one of 63 digits.
    case kF64:
    case kC128: return 64;
    default: return 0;  // of the halves none are converted to
  }
}

std::vector<PermutationTypes> WithConversions(
    std::vector<PermutationTypes> table) {
  for (int i = 0; i < kElementTypeCount; ++i) {
    const auto from = static_cast<ElementType>(i);
    for (int j = 0; j < kElementTypeCount; ++j) {
      const auto to = static_cast<ElementType>(j);
      const bool is_there =
          std::ranges::any_of(table, [&](const PermutationTypes& row) {
            return row.a == from && row.d == to;
          });
      if (is_there || (IsComplex(from) && IsInteger(to))) continue;
      table.push_back({from, to, ConversionComputeType(from, to)});
    }
  }
  return table;
}

}  // namespace

std::span<const PermutationTypes> PermutationTypeTable() {
  static const auto& table =
      *new std::vector(WithConversions(WithIntegers<PermutationTypes>({
          {kF16, kF16, kFloat16},
          {kF16, kF16, kFloat32},
          {kF16, kF32, kFloat32},
          {kF32, kF16, kFloat32},
          {kBf16, kBf16, kBfloat16},
          {kBf16, kBf16, kFloat32},
          {kF32, kF32, kFloat32},
          {kF64, kF64, kFloat64},
          {kF32, kF64, kFloat64},
          {kF64, kF32, kFloat64},
          {kC64, kC64, kFloat32},
          {kC128, kC128, kFloat64},
          {kC64, kC128, kFloat64},
          {kC128, kC64, kFloat64},
      })));
  return table;
}

std::span<const ElementwiseTypes> ElementwiseTypeTable() {
  static const auto& table = *new std::vector(WithIntegers<ElementwiseTypes>({
      {kF16, kF16, kF16, kFloat16},
      {kF16, kF16, kF16, kFloat32},
      {kBf16, kBf16, kBf16, kBfloat16},
      {kBf16, kBf16, kBf16, kFloat32},
      {kF32, kF32, kF32, kFloat32},
      {kF64, kF64, kF64, kFloat64},
      {kC64, kC64, kC64, kFloat32},
      {kC128, kC128, kC128, kFloat64},
      {kF32, kF32, kF16, kFloat32},
      {kF64, kF64, kF32, kFloat64},
      {kC128, kC128, kC64, kFloat64},
  }));
  return table;
}

std::span<const ReductionTypes> ReductionTypeTable() {
  static const auto& table = *new std::vector(WithIntegers<ReductionTypes>({
      {kF16, kF16, kFloat16},
      {kF16, kF16, kFloat32},
      {kBf16, kBf16, kBfloat16},
      {kBf16, kBf16, kFloat32},
      {kF32, kF32, kFloat32},
      {kF64, kF64, kFloat64},
      {kC64, kC64, kFloat32},
      {kC128, kC128, kFloat64},
  }));
  return table;
}

std::span<const ReductionTypes> SortingTypeTable() {
  static const auto& table = *new std::vector([] {
    std::vector<ReductionTypes> rows;
    for (int i = 0; i < kElementTypeCount; ++i) {
      const auto type = static_cast<ElementType>(i);
      if (!IsComplex(type))
        rows.push_back({type, ElementType::kInt64, kInteger});
    }
    return rows;
  }());
  return table;
}

std::span<const ContractionTypes> ContractionTypeTable() {
  static const auto& table = *new std::vector(WithIntegers<ContractionTypes>({
      {kF16, kF16, kF16, kFloat32},
      {kBf16, kBf16, kBf16, kFloat32},
      {kF32, kF32, kF32, kFloat32},
      {kF32, kF32, kF32, kTf32},
      {kF32, kF32, kF32, kFloat16},
      {kF64, kF64, kF64, kFloat64},
      {kF64, kF64, kF64, kFloat32},
      {kC64, kC64, kC64, kFloat32},
      {kC64, kC64, kC64, kTf32},
      {kC128, kC128, kC128, kFloat64},
      {kC128, kC128, kC128, kFloat32},
      {kF64, kC128, kC128, kFloat64},
      {kC128, kF64, kC128, kFloat64},
      {kF32, kF32, kF32, kThreeTf32},
      {kF32, kF32, kF32, kBfloat16},
      {kC64, kC64, kC64, kThreeTf32},
  }));
  return table;
}

absl::Status ValidatePermutationTypes(const PermutationTypes& types) {
  return ValidateTypes(PermutationTypeTable(), types, "permutation", "(a, d)");
}
absl::Status ValidateElementwiseTypes(const ElementwiseTypes& types) {
  return ValidateTypes(ElementwiseTypeTable(), types, "element-wise operation",
                       "(a, b, c)");
}
absl::Status ValidateReductionTypes(const ReductionTypes& types) {
  return ValidateTypes(ReductionTypeTable(), types, "reduction", "(a, c)");
}
absl::Status ValidateSortingTypes(const ReductionTypes& types) {
  return ValidateTypes(SortingTypeTable(), types, "sorting", "(a, c)");
}
absl::Status ValidateContractionTypes(const ContractionTypes& types) {
  return ValidateTypes(ContractionTypeTable(), types, "contraction",
                       "(a, b, c)");
}

ComputeType DefaultComputeType(ElementType widest) {
  if (IsInteger(widest)) return kInteger;
  const ElementType real = RealPartOf(widest);
  return real == kF64 ? kFloat64 : kFloat32;
}

ComputeType ConversionComputeType(ElementType from, ElementType to) {
  return DefaultComputeType(ComputeElement(from, to, ComputeType::kFloat32));
}

ElementType ComputeElement(ElementType x, ElementType y, ComputeType compute) {
  if (IsInteger(x) && IsInteger(y)) return y;
  if (IsInteger(x)) x = y;
  if (IsInteger(y)) y = x;
  const auto is_wide = [](ElementType type) {
    return RealPartOf(type) == ElementType::kFloat64;
  };
  const bool wide =
      is_wide(x) || is_wide(y) || compute == ComputeType::kFloat64;
  if (IsComplex(x) || IsComplex(y)) {
    return wide ? ElementType::kComplex128 : ElementType::kComplex64;
  }
  return wide ? ElementType::kFloat64 : ElementType::kFloat32;
}

ElementType WidestOf(ElementType x, ElementType y) {
  if (IsInteger(x) != IsInteger(y)) return IsInteger(x) ? y : x;
  if (IsInteger(x)) return DigitsOf(x) > DigitsOf(y) ? x : y;
  // The enum lists the floating-point types from narrow to wide.
  return std::max(x, y);
}

ElementType PromotedType(ElementType x, ElementType y) {
  if (x == y) return x;
  if (IsInteger(x) && IsInteger(y)) {
    const bool are_int8_and_uint8 = std::min(x, y) == ElementType::kInt8 &&
                                    std::max(x, y) == ElementType::kUint8;
    return are_int8_and_uint8 ? ElementType::kInt16 : WidestOf(x, y);
  }
  if (IsInteger(y)) std::swap(x, y);
  if (IsInteger(x)) {
    if (x == ElementType::kBool) return y;
    // Floating-point types that hold the integer; of bytes also bfloat16.
    const int64_t bytes = SizeOf(x);
    x = bytes == 1 ? (y == kBf16 ? kBf16 : kF16) : bytes == 2 ? kF32 : kF64;
    if (x == y) return x;
  }
  const bool are_halves = std::min(x, y) == kF16 && std::max(x, y) == kBf16;
  const ElementType real =
      are_halves ? kF32 : std::max(RealPartOf(x), RealPartOf(y));
  if (!IsComplex(x) && !IsComplex(y)) return real;
  return real == kF64 ? kC128 : kC64;
}

}  // namespace tensord::core
