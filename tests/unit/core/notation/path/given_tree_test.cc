#include <algorithm>
#include <random>
#include <vector>

#include "core/base/status.h"
#include "core/notation/path/find_path.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/notation/path/random_network.h"

namespace tensord::core {
namespace {

using ::testing::HasSubstr;
using Steps = std::vector<std::pair<int32_t, int32_t>>;
using Positions = std::vector<std::vector<int64_t>>;

Steps StepsOf(int input_count, const Positions& path) {
  return TreeFromPositions(input_count, path).value().steps;
}

TEST(TreeFromPositionsTest, ReadsPathsOfOptEinsum) {
  // The answers are opt_einsum.paths.linear_to_ssa's.
  EXPECT_EQ(StepsOf(4, {{1, 2}, {0, 1}, {0, 1}}),
            (Steps{{1, 2}, {0, 3}, {4, 5}}));
  EXPECT_EQ(StepsOf(4, {{0, 3}, {0, 2}, {0, 1}}),
            (Steps{{0, 3}, {1, 4}, {2, 5}}));
  EXPECT_EQ(StepsOf(6, {{5, 1}, {0, 3}, {2, 1}, {0, 2}, {1, 0}}),
            (Steps{{1, 5}, {0, 4}, {3, 6}, {2, 8}, {7, 9}}));
}

TEST(TreeFromPositionsTest, TakesStepsOfOneAndOfMany) {
  EXPECT_EQ(StepsOf(3, {{0, 1, 2}}), (Steps{{0, 1}, {2, 3}}));
  EXPECT_EQ(StepsOf(1, {{0}}), Steps{});
  EXPECT_EQ(StepsOf(1, {}), Steps{});
  // Operand 0 goes to the end of the list.
  EXPECT_EQ(StepsOf(3, {{0}, {0, 1}, {0, 1}}), (Steps{{1, 2}, {0, 3}}));
}

TEST(TreeFromPositionsTest, RefusesWhatIsNoPath) {
  const auto message = [](int input_count, const Positions& path) {
    const auto tree = TreeFromPositions(input_count, path);
    EXPECT_EQ(tree.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReasonOf(tree.status()), "PATH_MALFORMED");
    return std::string(tree.status().message());
  };
  EXPECT_THAT(message(3, {{0, 3}, {0, 1}}),
              HasSubstr("step 0 of the path, (0, 3), names a position outside "
                        "the 3 operands"));
  EXPECT_THAT(message(3, {{0, 1}, {0, -1}}), HasSubstr("step 1"));
  EXPECT_THAT(message(3, {{0, 0}, {0, 1}}), HasSubstr("twice"));
  EXPECT_THAT(message(3, {{}, {0, 1, 2}}), HasSubstr("no operand"));
  EXPECT_THAT(message(3, {{0, 1}}), HasSubstr("leaves 2 operands"));
  EXPECT_THAT(message(2, {{0, 1}, {0, 1}}), HasSubstr("step 1"));
}

TEST(TreeFromIndexOrderTest, ContractsNconsExample) {
  // a and c share index 0, then b joins; indices 1 and 2 go with their nodes.
  const Network network = {{{0, 1}, {1, 2}, {0, 3}}, {2, 3}, {2, 2, 2, 2}};
  EXPECT_EQ(TreeFromIndexOrder(network, {0, 1}).steps, (Steps{{0, 2}, {1, 3}}));
  EXPECT_EQ(TreeFromIndexOrder(network, {1, 0}).steps, (Steps{{0, 1}, {2, 3}}));
}

TEST(TreeFromIndexOrderTest, TakesAllNodesOfAnIndexAndAllTheirIndices) {
  // Index 0 is in three inputs; index 1 is gone with it.
  const Network network = {{{0, 1}, {1, 0}, {2}, {0, 2}}, {}, {2, 3, 4}};
  EXPECT_EQ(TreeFromIndexOrder(network, {0, 1, 2}).steps,
            (Steps{{0, 1}, {3, 4}, {2, 5}}));
}

TEST(TreeFromIndexOrderTest, LeavesTheRestInTheirOrder) {
  const Network network = {{{0}, {1}, {0}, {2}}, {1, 2}, {2, 3, 4}};
  EXPECT_EQ(TreeFromIndexOrder(network, {}).steps,
            (Steps{{0, 1}, {2, 4}, {3, 5}}));
  EXPECT_EQ(TreeFromIndexOrder(network, {0}).steps,
            (Steps{{0, 2}, {1, 3}, {4, 5}}));
}

TEST(TreeFromIndexOrderTest, IsATreeForEveryOrder) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Network network = tensord::test::RandomNetwork(
        rng, {.max_inputs = 12, .max_indices = 15, .max_occurrences = 4});
    std::vector<int32_t> order;
    for (size_t i = 0; i < network.extents.size(); ++i) {
      if (rng() % 4 != 0) order.push_back(static_cast<int32_t>(i));
    }
    std::shuffle(order.begin(), order.end(), rng);
    EXPECT_TRUE(tensord::test::IsTree(static_cast<int>(network.inputs.size()),
                                      TreeFromIndexOrder(network, order)));
  }
}

}  // namespace
}  // namespace tensord::core
