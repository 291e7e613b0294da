#include "core/backend/cpu/direct/direct_way.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/backend/cpu/direct/direct_execution.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/operands.h"

namespace tensord::core {
namespace {

using tensord::test::PackedBy;
using testing::HasSubstr;
using Extents = std::map<char, int64_t>;

constexpr GemmRates kRatesOfTwo{.thread_count = 2};

ContractionProblem ProblemOf(absl::string_view d, absl::string_view a,
                             absl::string_view b, const Extents& extents,
                             ElementType type = ElementType::kFloat32) {
  return Canonicalize({.a = PackedBy(extents, type, a),
                       .b = PackedBy(extents, type, b),
                       .c = std::nullopt,
                       .d = PackedBy(extents, type, d),
                       .compute_type = DefaultComputeType(type)});
}

class DirectWayTest : public testing::Test {
 protected:
  void SetUp() override {
    if (TileShapes(ElementType::kFloat32).empty()) {
      GTEST_SKIP() << "no ways: this CPU's vectors are of no known length";
    }
  }
};

TEST(DirectRefusalTest, SaysWhatItDoesNotDo) {
  const Extents extents = {{'a', 3}, {'b', 4}, {'c', 5}};
  const auto refusal = [](const ContractionProblem& problem) {
    return std::string(DirectWays(problem, kRatesOfTwo).status().message());
  };
  EXPECT_THAT(
      refusal(ProblemOf("ab", "ac", "cb", extents, ElementType::kComplex64)),
      HasSubstr("float32 and float64, got complex64"));
  EXPECT_THAT(refusal(ProblemOf("a", "ac", "b", extents)),
              HasSubstr("modes of one input alone"));
  EXPECT_THAT(
      refusal(ProblemOf("ab", "ac", "cb", {{'a', 3}, {'b', 4}, {'c', 0}})),
      HasSubstr("nothing to sum"));
  ContractionProblem rounded = ProblemOf("ab", "ac", "cb", extents);
  rounded.compute_type = ComputeType::kTf32;
  EXPECT_THAT(refusal(rounded), HasSubstr("does not round"));
}

TEST_F(DirectWayTest, SplitsRunsWhereColumnsFollowThem) {
  // d's run of 25 is not whole vectors; b, a mode of the other input, follows.
  const Extents extents = {{'a', 25}, {'b', 16}, {'c', 16}, {'d', 24},
                           {'e', 16}, {'f', 16}, {'g', 24}};
  const auto splits = [&](absl::string_view d) {
    const auto ways =
        DirectWays(ProblemOf(d, "degb", "gfac", extents), kRatesOfTwo);
    for (const DirectWay& way : *ways) {
      if (!way.splits_runs) continue;
      EXPECT_EQ(way.rows.modes[0].strides[DirectWay::kD], 1);
      EXPECT_EQ(way.columns.modes[0].strides[DirectWay::kD],
                way.rows.modes[0].extent);
      EXPECT_EQ(way.rows.padded, 1u);
      return true;
    }
    return false;
  };
  EXPECT_TRUE(splits("abcdef"));
  EXPECT_FALSE(splits("acbdef"));  // c follows, of the same input
}

TEST_F(DirectWayTest, ShortStretchesOfTheResultCost) {
  // d's fastest modes are a's and then batches: each batch writes 16 bytes of
  // a line.
  const Extents extents = {{'a', 2},  {'b', 3},  {'c', 8}, {'d', 2},
                           {'e', 24}, {'f', 15}, {'g', 38}};
  const auto cost = [&](absl::string_view d) {
    return ChooseDirectWay(
               ProblemOf(d, "dfcegb", "agb", extents, ElementType::kFloat64),
               kRatesOfTwo)
        ->nanoseconds;
  };
  EXPECT_GT(cost("dgbafce"), 3 * cost("dfceagb"));
}

TEST_F(DirectWayTest, BlocksOfHugeProblemsAreBounded) {
  constexpr int64_t kMostBytes = int64_t{3} << 20;
  const int64_t huge = int64_t{1} << 18;
  for (const absl::string_view a : {"acik", "kica", "icka", "ckai"}) {
    for (const absl::string_view b : {"bdki", "ikdb", "dikb", "kbid"}) {
      for (const auto type : {ElementType::kFloat32, ElementType::kFloat64}) {
        SCOPED_TRACE(testing::Message() << a << " " << b);
        const ContractionProblem problem = ProblemOf("abcd", a, b,
                                                     {{'a', huge},
                                                      {'b', huge},
                                                      {'c', 7},
                                                      {'d', 9},
                                                      {'i', huge},
                                                      {'k', 11}},
                                                     type);
        const auto ways = DirectWays(problem, kRatesOfTwo);
        for (const DirectWay& way : *ways) {
          EXPECT_GT(way.nanoseconds, 0);
          EXPECT_LE(DirectWorkspaceBytes(way, 1), kMostBytes);
          EXPECT_GE(way.task_count(), kRatesOfTwo.thread_count);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tensord::core
