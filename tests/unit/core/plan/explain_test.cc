#include "core/plan/explain.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "core/ops/type_tables.h"
#include "core/problem/contraction_problem.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/element_types.h"
#include "tests/testing/operands.h"

namespace tensord::core {
namespace {

using tensord::test::Packed;
using ::testing::HasSubstr;

using tensord::test::kF32;

ContractionDesc Product(ElementType type) {
  return {.a = Packed(type, "mk", {3, 4}),
          .b = Packed(type, "kn", {4, 5}),
          .c = std::nullopt,
          .d = Packed(type, "mn", {3, 5}),
          .compute_type = DefaultComputeType(type)};
}

TEST(ExplainTest, ContractionCountsMultiplicationsAndAdditions) {
  EXPECT_EQ(FlopCount(Canonicalize(Product(kF32))), 2 * 3 * 4 * 5);
  EXPECT_EQ(FlopCount(Canonicalize(Product(ElementType::kComplex64))),
            8 * 3 * 4 * 5);
}

TEST(ExplainTest, BytesCountEachOperandOnce) {
  EXPECT_EQ(MovedBytes(Canonicalize(Product(kF32))), 4 * (12 + 20 + 15));
  const PermutationDesc broadcast{.a = Packed(kF32, "i", {6}),
                                  .d = Packed(kF32, "ij", {6, 7})};
  EXPECT_EQ(MovedBytes(Canonicalize(broadcast)), 4 * (6 + 42));
}

TEST(ExplainTest, BytesStopAtTheMostThatFits) {
  // 2^61 + 2^61 + 2^62 bytes.
  const int64_t batch = int64_t{1} << 58;
  const ContractionDesc huge{.a = Packed(kF32, "mb", {2, batch}),
                             .b = Packed(kF32, "nb", {2, batch}),
                             .c = std::nullopt,
                             .d = Packed(kF32, "mnb", {2, 2, batch}),
                             .compute_type = DefaultComputeType(kF32)};
  EXPECT_EQ(MovedBytes(Canonicalize(huge)),
            std::numeric_limits<int64_t>::max());
}

TEST(ExplainTest, EmptyProblemsCostNothing) {
  const PermutationDesc empty{.a = Packed(kF32, "ij", {0, 7}),
                              .d = Packed(kF32, "ij", {0, 7})};
  EXPECT_EQ(FlopCount(Canonicalize(empty)), 0);
  EXPECT_EQ(MovedBytes(Canonicalize(empty)), 0);
}

TEST(ExplainTest, SummaryNamesTypesAndGroups) {
  const std::string summary = Summarize(Canonicalize(Product(kF32)));
  EXPECT_THAT(summary, HasSubstr("contraction float32 float32 -> float32"));
  EXPECT_THAT(summary, HasSubstr("m 3:(1,1,1)"));
  EXPECT_THAT(summary, HasSubstr("n 5:(4,3,3)"));
  EXPECT_THAT(summary, HasSubstr("k 4:(3,1)"));
}

}  // namespace
}  // namespace tensord::core
