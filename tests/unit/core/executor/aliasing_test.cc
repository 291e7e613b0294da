#include "core/executor/aliasing.h"

#include <array>
#include <string>

#include "core/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/element_types.h"
#include "tests/testing/operands.h"

namespace tensord::core {
namespace {

using tensord::test::Packed;
using tensord::test::Strided;
using ::testing::HasSubstr;

using tensord::test::kF32;

class AliasingTest : public ::testing::Test {
 protected:
  static void ExpectRefused(const absl::Status& status,
                            const std::string& operand) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReasonOf(status), "OUTPUT_OVERLAPS_INPUT");
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("d overlaps " + operand));
  }

  std::array<float, 256> memory_;
  float* const p_ = memory_.data();
};

TEST_F(AliasingTest, PermutationNeedsDisjointMemory) {
  const PermutationDesc desc{.a = Packed(kF32, "ij", {4, 4}),
                             .d = Packed(kF32, "ji", {4, 4})};
  EXPECT_TRUE(CheckAliasing(desc, {.a = p_, .d = p_ + 16}).ok());
  EXPECT_TRUE(CheckAliasing(desc, {.a = p_ + 16, .d = p_}).ok());
  ExpectRefused(CheckAliasing(desc, {.a = p_, .d = p_}), "a");
  ExpectRefused(CheckAliasing(desc, {.a = p_, .d = p_ + 15}), "a");
  ExpectRefused(CheckAliasing(desc, {.a = p_ + 15, .d = p_}), "a");
}

// A1.9
TEST_F(AliasingTest, ElementwiseMayBeInPlaceOnAnyInputAlike) {
  const OperandDesc d = Packed(kF32, "ab", {4, 4});
  const ElementwiseDesc desc{.a = d, .b = d, .c = d, .d = d};
  float* const q = p_ + 64;
  EXPECT_TRUE(CheckAliasing(desc, {.a = p_, .b = q, .c = q, .d = p_}).ok());
  EXPECT_TRUE(CheckAliasing(desc, {.a = q, .b = p_, .c = q, .d = p_}).ok());
  EXPECT_TRUE(CheckAliasing(desc, {.a = q, .b = q, .c = p_, .d = p_}).ok());
  EXPECT_TRUE(CheckAliasing(desc, {.a = p_, .b = p_, .c = p_, .d = p_}).ok());
}

// A1.9: D[a,b] = A[b,a] on a square buffer would race with itself.
TEST_F(AliasingTest, TransposeInPlaceIsRefused) {
  ElementwiseDesc desc{.a = Packed(kF32, "ba", {4, 4}),
                       .b = std::nullopt,
                       .c = Packed(kF32, "ab", {4, 4}),
                       .d = Packed(kF32, "ab", {4, 4})};
  ExpectRefused(CheckAliasing(desc, {.a = p_, .c = p_ + 64, .d = p_}), "a");
  desc.a = Strided(kF32, "ab", {4, 4}, {4, 1});
  ExpectRefused(CheckAliasing(desc, {.a = p_, .c = p_ + 64, .d = p_}), "a");
}

TEST_F(AliasingTest, ElementwiseShiftedByOneElementIsRefused) {
  const OperandDesc d = Packed(kF32, "ab", {4, 4});
  const ElementwiseDesc desc{.a = d, .b = d, .c = d, .d = d};
  ExpectRefused(
      CheckAliasing(desc, {.a = p_ + 64, .b = p_ + 64, .c = p_ + 1, .d = p_}),
      "c");
  ExpectRefused(
      CheckAliasing(desc, {.a = p_ + 64, .b = p_ + 1, .c = p_ + 64, .d = p_}),
      "b");
}

TEST_F(AliasingTest, InputsThatAreNotReadMayOverlap) {
  const PermutationDesc permutation{.a = Packed(kF32, "ij", {4, 4}),
                                    .d = Packed(kF32, "ji", {4, 4})};
  EXPECT_TRUE(
      CheckAliasing(permutation, {.a = p_ + 3, .d = p_, .alpha = kZero}).ok());
  const ContractionDesc product{.a = Packed(kF32, "mk", {4, 4}),
                                .b = Packed(kF32, "kn", {4, 4}),
                                .c = Packed(kF32, "mn", {4, 4}),
                                .d = Packed(kF32, "mn", {4, 4})};
  EXPECT_TRUE(
      CheckAliasing(
          product,
          {.a = p_ + 64, .b = p_ + 64, .c = p_ + 3, .d = p_, .beta = kZero})
          .ok());
}

TEST_F(AliasingTest, ContractionMayAccumulateInPlaceOnly) {
  const ContractionDesc desc{.a = Packed(kF32, "mk", {4, 4}),
                             .b = Packed(kF32, "kn", {4, 4}),
                             .c = Packed(kF32, "mn", {4, 4}),
                             .d = Packed(kF32, "mn", {4, 4})};
  float* const q = p_ + 64;
  EXPECT_TRUE(
      CheckAliasing(desc, {.a = q, .b = q, .c = p_, .d = p_, .beta = kOne})
          .ok());
  ExpectRefused(
      CheckAliasing(desc, {.a = p_, .b = q, .c = q, .d = p_, .beta = kOne}),
      "a");
  ExpectRefused(
      CheckAliasing(desc, {.a = q, .b = p_, .c = q, .d = p_, .beta = kOne}),
      "b");
  ExpectRefused(
      CheckAliasing(desc, {.a = q, .b = q, .c = p_ + 1, .d = p_, .beta = kOne}),
      "c");
}

TEST_F(AliasingTest, ReductionMayAccumulateInPlaceOnly) {
  const ReductionDesc desc{.a = Packed(kF32, "ij", {4, 4}),
                           .c = Packed(kF32, "i", {4}),
                           .d = Packed(kF32, "i", {4})};
  EXPECT_TRUE(
      CheckAliasing(desc, {.a = p_ + 64, .c = p_, .d = p_, .beta = kOne}).ok());
  ExpectRefused(
      CheckAliasing(desc, {.a = p_, .c = p_ + 64, .d = p_ + 12, .beta = kOne}),
      "a");
}

TEST_F(AliasingTest, InterleavedOperandsCountAsOverlapping) {
  const PermutationDesc desc{.a = Strided(kF32, "i", {4}, {2}),
                             .d = Strided(kF32, "i", {4}, {2})};
  ExpectRefused(CheckAliasing(desc, {.a = p_, .d = p_ + 1}), "a");
}

TEST_F(AliasingTest, FactorsOverlapNeitherTheInputNorEachOther) {
  const FactorizationDesc desc{.a = Packed(kF32, "ij", {4, 4}),
                               .left = Strided(kF32, "ik", {4, 4}, {12, 1}),
                               .right = Strided(kF32, "kj", {4, 4}, {12, 1})};
  float* const q = p_ + 64;
  EXPECT_TRUE(
      CheckAliasing(desc, {.a = p_, .left = q, .right = p_ + 128}).ok());
  const auto expect_refused = [](const absl::Status& status,
                                 const std::string& reason,
                                 const std::string& words) {
    EXPECT_EQ(ReasonOf(status), reason);
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  expect_refused(CheckAliasing(desc, {.a = q, .left = q, .right = p_ + 128}),
                 "OUTPUT_OVERLAPS_INPUT", "q overlaps a, wanted disjoint");
  expect_refused(
      CheckAliasing(desc, {.a = p_ + 128, .left = q, .right = p_ + 128}),
      "OUTPUT_OVERLAPS_INPUT", "r overlaps a");
  // Rows of 12 elements hold both side by side: true, but not looked into.
  const FactorizationOperands side_by_side{.a = p_, .left = q, .right = q + 6};
  expect_refused(CheckAliasing(desc, side_by_side), "OUTPUTS_OVERLAP",
                 "q overlaps r");
  EXPECT_TRUE(
      CheckAliasing(desc, side_by_side, {.results = {{{false, true}}}}).ok());
}

TEST_F(AliasingTest, ValuesOverlapNoOtherResult) {
  const FactorizationDesc desc{.method = FactorizationMethod::kSvd,
                               .a = Packed(kF32, "ij", {4, 4}),
                               .left = Packed(kF32, "ik", {4, 4}),
                               .right = Packed(kF32, "kj", {4, 4}),
                               .values = Packed(kF32, "k", {4})};
  const FactorizationOperands apart{
      .a = p_, .left = p_ + 64, .right = p_ + 128, .values = p_ + 192};
  EXPECT_TRUE(CheckAliasing(desc, apart).ok());
  FactorizationOperands overlapping = apart;
  overlapping.values = p_ + 130;
  const absl::Status status = CheckAliasing(desc, overlapping);
  EXPECT_EQ(ReasonOf(status), "OUTPUTS_OVERLAP");
  EXPECT_THAT(std::string(status.message()), HasSubstr("s overlaps v"));
}

TEST_F(AliasingTest, EmptyOperandsOverlapNothing) {
  const PermutationDesc desc{.a = Packed(kF32, "ij", {0, 4}),
                             .d = Packed(kF32, "ij", {0, 4})};
  EXPECT_TRUE(CheckAliasing(desc, {.a = p_, .d = p_}).ok());
}

}  // namespace
}  // namespace tensord::core
