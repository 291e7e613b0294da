#include "core/notation/path/network.h"

#include <algorithm>
#include <random>
#include <vector>

#include "core/notation/path/order_steps.h"
#include "gtest/gtest.h"
#include "tests/unit/core/notation/path/random_network.h"

namespace tensord::core {
namespace {

void ExpectEqual(const TreeCost& x, const TreeCost& y) {
  EXPECT_EQ(x.flops, y.flops);
  EXPECT_EQ(x.largest, y.largest);
  EXPECT_EQ(x.peak, y.peak);
  EXPECT_EQ(x.written, y.written);
}

/// ab,bc,cd->ad with extents 2, 3, 5, 7.
Network Chain() { return {{{0, 1}, {1, 2}, {2, 3}}, {0, 3}, {2, 3, 5, 7}}; }

TEST(CostOfTest, OfAChainOfMatrices) {
  const Network chain = Chain();
  const TreeCost left = CostOf(chain, {{{0, 1}, {3, 2}}});
  EXPECT_EQ(left.flops, 2 * 30 + 2 * 70);
  EXPECT_EQ(left.largest, 14);
  EXPECT_EQ(left.peak, 10 + 14);
  EXPECT_EQ(left.written, 10 + 14);
  const TreeCost outer = CostOf(chain, {{{0, 2}, {3, 1}}});
  EXPECT_EQ(outer.flops, 210 + 2 * 210);
  EXPECT_EQ(outer.peak, 210 + 14);
}

TEST(CostOfTest, WhatOneInputHasIsSummedFirst) {
  const Network network = {{{0, 1}, {1, 2}}, {}, {2, 3, 5}};
  EXPECT_EQ(CostOf(network, {{{0, 1}}}).flops, 6 + 15 + 2 * 3);
  const Network single = {{{0, 1}}, {1}, {2, 3}};
  EXPECT_EQ(CostOf(single, {}).flops, 6);
  EXPECT_EQ(CostOf(single, {}).peak, 0);
}

TEST(CostOfTest, SlicesAreCountedTogetherAndAddedUp) {
  const Network chain = Chain();
  const ContractionTree tree = {{{0, 1}, {3, 2}}};
  // Over b: the first step is an outer product; 14 more to add a slice up.
  const TreeCost summed = CostOf(chain, tree, {1});
  EXPECT_EQ(summed.flops, 3 * (10 + 2 * 70 + 14));
  EXPECT_EQ(summed.written, 3 * (10 + 14));
  EXPECT_EQ(summed.peak, 10 + 14);
  // Over a: of the result each slice writes a part, but all of it is there.
  const TreeCost apart = CostOf(chain, tree, {0});
  EXPECT_EQ(apart.flops, 2 * (2 * 15 + 2 * 35));
  EXPECT_EQ(apart.written, 2 * (5 + 7));
  EXPECT_EQ(apart.peak, 5 + 14);
  EXPECT_EQ(apart.largest, 14);
}

TEST(CostOfTest, IsThatOfTheDefinition) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Network network =
        tensord::test::RandomNetwork(rng, {.max_inputs = 8});
    const ContractionTree tree =
        tensord::test::RandomTree(rng, static_cast<int>(network.inputs.size()));
    std::vector<int32_t> sliced;
    for (size_t i = 0; i < network.extents.size(); ++i) {
      if (seed % 2 == 1 && rng() % 4 == 0) {
        sliced.push_back(static_cast<int32_t>(i));
      }
    }
    ExpectEqual(CostOf(network, tree, sliced),
                tensord::test::CostByDefinition(network, tree, sliced));
  }
}

TEST(ResultsOfTest, KeepWhatTheOutputOrOthersHave) {
  // A batch index in all three inputs.
  const Network network = {
      {{0, 1, 2}, {0, 2, 3}, {3, 0, 4}}, {4, 0, 1}, {2, 3, 4, 5, 6}};
  const std::vector<Network::Indices> results =
      ResultsOf(network, {{{0, 1}, {3, 2}}});
  EXPECT_EQ(results, (std::vector<Network::Indices>{{0, 1, 3}, {0, 1, 4}}));
}

TEST(OrderForPeakTest, KeepsTheTreeAndNeverRaisesThePeak) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Network network = tensord::test::RandomNetwork(
        rng, {.min_inputs = 2, .max_inputs = 9, .max_indices = 14});
    const int input_count = static_cast<int>(network.inputs.size());
    const ContractionTree tree = tensord::test::RandomTree(rng, input_count);
    const ContractionTree ordered = OrderForPeak(network, tree);
    ASSERT_TRUE(tensord::test::IsTree(input_count, ordered));
    const TreeCost before = CostOf(network, tree);
    const TreeCost after = CostOf(network, ordered);
    EXPECT_EQ(after.flops, before.flops);
    EXPECT_EQ(after.written, before.written);
    EXPECT_EQ(OrderForPeak(network, ordered), ordered);
    // One branch after the other, whichever comes first.
    for (int i = 0; i < 20; ++i) {
      ContractionTree other = tree;
      std::vector<std::vector<int32_t>> children(2 * input_count - 1);
      for (size_t s = 0; s < tree.steps.size(); ++s) {
        children[input_count + s] = {tree.steps[s].first, tree.steps[s].second};
        std::shuffle(children[input_count + s].begin(),
                     children[input_count + s].end(), rng);
      }
      std::vector<int32_t> open = {2 * input_count - 2}, made;
      while (!open.empty()) {
        const int32_t node = open.back();
        open.pop_back();
        if (node < input_count) continue;
        made.push_back(node);
        open.insert(open.end(), children[node].begin(), children[node].end());
      }
      std::reverse(made.begin(), made.end());
      std::vector<int32_t> numbers(2 * input_count - 1);
      for (int n = 0; n < input_count; ++n) numbers[n] = n;
      other.steps.clear();
      for (const int32_t node : made) {
        other.steps.emplace_back(numbers[children[node][0]],
                                 numbers[children[node][1]]);
        numbers[node] =
            input_count + static_cast<int32_t>(other.steps.size()) - 1;
      }
      EXPECT_LE(after.peak, CostOf(network, other).peak);
    }
  }
}

}  // namespace
}  // namespace tensord::core
