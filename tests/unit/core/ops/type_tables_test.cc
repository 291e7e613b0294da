#include "core/ops/type_tables.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/core/ops/refusal.h"

namespace tensord::core {
namespace {

using tensord::test::IsUnsupported;

template <typename Types>
int64_t FloatingRows(std::span<const Types> table) {
  return std::ranges::count_if(
      table, [](const Types& row) { return !IsInteger(row.a); });
}

template <typename Table>
bool HasDuplicates(const Table& table) {
  for (size_t i = 0; i < table.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (table[i] == table[j]) return true;
    }
  }
  return false;
}

TEST(TypeTablesTest, FloatingRowsAreThoseOfTheSpecification) {
  EXPECT_EQ(FloatingRows(ElementwiseTypeTable()), 11);
  EXPECT_EQ(FloatingRows(ReductionTypeTable()), 8);
  EXPECT_EQ(FloatingRows(ContractionTypeTable()), 13 + 3);
}

TEST(TypeTablesTest, EveryIntegerTypeHasOneRowEach) {
  EXPECT_EQ(std::ranges::count_if(PermutationTypeTable(),
                                  [](const PermutationTypes& row) {
                                    return IsInteger(row.a) && row.a == row.d;
                                  }),
            6);
  EXPECT_EQ(ElementwiseTypeTable().size(), 11u + 6);
  EXPECT_EQ(ReductionTypeTable().size(), 8u + 6);
  EXPECT_EQ(ContractionTypeTable().size(), 16u + 6);
  EXPECT_TRUE(
      ValidateContractionTypes({ElementType::kBool, ElementType::kBool,
                                ElementType::kBool, ComputeType::kInteger})
          .ok());
}

TEST(TypeTablesTest, EverythingIsConvertedButComplexNumbersToIntegers) {
  const auto type = [](int i) { return static_cast<ElementType>(i); };
  for (int i = 0; i < kElementTypeCount; ++i) {
    for (int j = 0; j < kElementTypeCount; ++j) {
      const auto rows = std::ranges::count_if(
          PermutationTypeTable(), [&](const PermutationTypes& row) {
            return row.a == type(i) && row.d == type(j);
          });
      // The halves have a row for arithmetic in their own precision, too.
      const bool is_half =
          type(i) == ElementType::kFloat16 || type(i) == ElementType::kBfloat16;
      const bool is_missing = IsComplex(type(i)) && IsInteger(type(j));
      EXPECT_EQ(rows, is_missing          ? 0
                      : i == j && is_half ? 2
                                          : 1)
          << NameOf(type(i)) << " to " << NameOf(type(j));
    }
  }
}

TEST(TypeTablesTest, ConversionsAreComputedInTheWiderType) {
  const auto compute = [](ElementType a, ElementType d) {
    const auto row = std::ranges::find_if(
        PermutationTypeTable(),
        [&](const PermutationTypes& x) { return x.a == a && x.d == d; });
    return row->compute;
  };
  using enum ElementType;
  EXPECT_EQ(compute(kFloat64, kInt8), ComputeType::kFloat64);
  EXPECT_EQ(compute(kInt64, kFloat16), ComputeType::kFloat32);
  EXPECT_EQ(compute(kInt64, kInt8), ComputeType::kInteger);
  EXPECT_EQ(compute(kComplex64, kFloat64), ComputeType::kFloat64);
  EXPECT_EQ(compute(kFloat16, kBfloat16), ComputeType::kFloat32);
}

TEST(TypeTablesTest, NoRowOccursTwice) {
  EXPECT_FALSE(HasDuplicates(PermutationTypeTable()));
  EXPECT_FALSE(HasDuplicates(ElementwiseTypeTable()));
  EXPECT_FALSE(HasDuplicates(ReductionTypeTable()));
  EXPECT_FALSE(HasDuplicates(ContractionTypeTable()));
}

TEST(TypeTablesTest, EveryRowIsSupported) {
  for (const auto& row : PermutationTypeTable()) {
    EXPECT_TRUE(ValidatePermutationTypes(row).ok());
  }
  for (const auto& row : ElementwiseTypeTable()) {
    EXPECT_TRUE(ValidateElementwiseTypes(row).ok());
  }
  for (const auto& row : ReductionTypeTable()) {
    EXPECT_TRUE(ValidateReductionTypes(row).ok());
  }
  for (const auto& row : ContractionTypeTable()) {
    EXPECT_TRUE(ValidateContractionTypes(row).ok());
  }
}

// A1.T12, A4.T14
TEST(TypeTablesTest, EverythingElseIsUnsupported) {
  int64_t supported = 0;
  const auto type = [](int i) { return static_cast<ElementType>(i); };
  for (int i = 0; i < kElementTypeCount; ++i) {
    for (int j = 0; j < kElementTypeCount; ++j) {
      for (int k = 0; k < kElementTypeCount; ++k) {
        for (int compute = 0; compute < kComputeTypeCount; ++compute) {
          const absl::Status status = ValidateContractionTypes(
              {type(i), type(j), type(k), static_cast<ComputeType>(compute)});
          supported += status.ok();
          if (!status.ok()) {
            EXPECT_THAT(status, IsUnsupported("nearest: ("));
          }
        }
      }
    }
  }
  EXPECT_EQ(supported, 16 + 6);
}

TEST(TypeTablesTest, DefaultComputeTypeFollowsTheWidestOperand) {
  EXPECT_EQ(DefaultComputeType(ElementType::kFloat16), ComputeType::kFloat32);
  EXPECT_EQ(DefaultComputeType(ElementType::kComplex64), ComputeType::kFloat32);
  EXPECT_EQ(DefaultComputeType(ElementType::kComplex128),
            ComputeType::kFloat64);
  EXPECT_EQ(DefaultComputeType(ElementType::kUint8), ComputeType::kInteger);
  EXPECT_EQ(WidestOf(ElementType::kFloat64, ElementType::kComplex128),
            ElementType::kComplex128);
  EXPECT_EQ(WidestOf(ElementType::kInt64, ElementType::kFloat32),
            ElementType::kFloat32);
  EXPECT_EQ(WidestOf(ElementType::kComplex64, ElementType::kBool),
            ElementType::kComplex64);
  EXPECT_EQ(WidestOf(ElementType::kBool, ElementType::kInt16),
            ElementType::kInt16);
  EXPECT_EQ(WidestOf(ElementType::kInt64, ElementType::kUint8),
            ElementType::kInt64);
}

TEST(PromotedTypeTest, IsNumpys) {
  using enum ElementType;
  const std::vector<std::tuple<ElementType, ElementType, ElementType>> known = {
      {kFloat16, kFloat32, kFloat32},
      {kFloat32, kFloat64, kFloat64},
      {kFloat32, kComplex64, kComplex64},
      {kFloat64, kComplex64, kComplex128},
      {kInt8, kInt16, kInt16},
      {kInt8, kUint8, kInt16},
      {kUint8, kInt16, kInt16},
      {kInt32, kInt64, kInt64},
      {kBool, kInt8, kInt8},
      {kBool, kFloat16, kFloat16},
      {kInt8, kFloat16, kFloat16},
      {kInt16, kFloat16, kFloat32},
      {kInt32, kFloat32, kFloat64},
      {kInt16, kFloat32, kFloat32},
      {kInt64, kComplex64, kComplex128},
      {kInt16, kComplex64, kComplex64},
      {kBfloat16, kFloat16, kFloat32},
      {kBfloat16, kFloat32, kFloat32},
      {kUint8, kBfloat16, kBfloat16},
  };
  for (const auto& [x, y, wanted] : known) {
    EXPECT_EQ(NameOf(PromotedType(x, y)), NameOf(wanted))
        << std::string(NameOf(x)) << " " << std::string(NameOf(y));
    EXPECT_EQ(PromotedType(y, x), PromotedType(x, y));
  }
}

}  // namespace
}  // namespace tensord::core
