#include "core/notation/path/sliced/anneal.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/notation/path/find_path.h"
#include "core/notation/path/sliced/anneal_search.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/no_threads.h"
#include "tests/unit/core/notation/path/random_network.h"

namespace tensord::core {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

Network RandomNetworkOf(uint32_t seed, int max_inputs) {
  std::mt19937 rng(seed);
  return tensord::test::RandomNetwork(
      rng, {.min_inputs = 3,
            .max_inputs = max_inputs,
            .max_indices = 2 * max_inputs,
            .max_occurrences = 2 + static_cast<int>(seed % 3)});
}

/// The flops of steps by the definition: what inputs sum alone, and the sum of
/// slices, do not depend on the tree.
double FlopsOfSteps(const Network& network, const ContractionTree& tree,
                    const std::vector<int32_t>& sliced) {
  Network bare = network;
  std::vector<int> counts(network.extents.size());
  for (const auto& input : network.inputs) {
    for (const int32_t index : input) ++counts[index];
  }
  for (const int32_t index : network.output) ++counts[index];
  for (auto& input : bare.inputs) {
    const auto end =
        std::remove_if(input.begin(), input.end(),
                       [&](int32_t index) { return counts[index] == 1; });
    input.erase(end, input.end());
  }
  double added = 1, slices = 1;
  bool adds = false;
  for (const int32_t index : network.output) {
    if (std::ranges::find(sliced, index) == sliced.end()) {
      added *= static_cast<double>(network.extents[index]);
    }
  }
  for (const int32_t index : sliced) {
    slices *= static_cast<double>(network.extents[index]);
    adds |= std::ranges::find(network.output, index) == network.output.end();
  }
  const double flops =
      tensord::test::CostByDefinition(bare, tree, sliced).flops;
  return adds ? flops - added * slices : flops;
}

TEST(SliceAnnealerTest, CountsTheFlopsOfTheTreeThatItHas) {
  int sliced_count = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Network network = RandomNetworkOf(seed, 20);
    std::mt19937 rng(seed);
    const int input_count = static_cast<int>(network.inputs.size());
    const ContractionTree given = tensord::test::RandomTree(rng, input_count);
    Random random(seed);
    const double most = tensord::test::CostByDefinition(network, given).largest;
    SliceAnnealer annealer(network, std::log2(most) * (seed % 5) / 4);
    annealer.Load(given, {}, random);
    for (const int sweeps : {0, 30}) {
      annealer.Anneal({.sweep_count = sweeps, .hottest = 1, .coldest = 0.1},
                      random, Deadline(absl::InfiniteDuration()));
      const ContractionTree tree = annealer.tree();
      ASSERT_TRUE(tensord::test::IsTree(input_count, tree));
      const double flops = FlopsOfSteps(network, tree, annealer.sliced());
      // Sums and logarithms of as many numbers as there are steps.
      EXPECT_NEAR(annealer.Bits(), std::log2(flops), 1e-9);
    }
    sliced_count += annealer.sliced().empty() ? 0 : 1;
  }
  EXPECT_GT(sliced_count, 50);
}

TEST(SliceAnnealerTest, KeepsResultsToTheLimit) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Network network = RandomNetworkOf(seed, 20);
    std::mt19937 rng(seed);
    const ContractionTree given =
        tensord::test::RandomTree(rng, static_cast<int>(network.inputs.size()));
    const TreeCost before = tensord::test::CostByDefinition(network, given);
    double whole = 1;
    for (const int32_t index : network.output) {
      whole *= static_cast<double>(network.extents[index]);
    }
    Random random(seed);
    const double limit = std::max(whole, std::sqrt(before.largest));
    SliceAnnealer annealer(network, std::log2(limit));
    annealer.Load(given, {}, random);
    const double loaded = annealer.Bits();
    annealer.Anneal({.sweep_count = 50}, random,
                    Deadline(absl::InfiniteDuration()));
    ASSERT_TRUE(annealer.fits());
    EXPECT_LE(annealer.Bits(), loaded + 1e-9);
    EXPECT_LE(tensord::test::CostByDefinition(network, annealer.tree(),
                                              annealer.sliced())
                  .largest,
              limit * (1 + 1e-9));
  }
}

TEST(AnnealSearchTest, FindsTheSameOnAnyNumberOfThreads) {
  std::mt19937 rng(3);
  const Network network = tensord::test::RegularNetwork(rng, 18, 3, 2);
  const PathOptions options = {.time_budget = absl::Hours(1),
                               .max_result = 32,
                               .seed = 4,
                               .thread_count = 1};
  PathOptions parallel = options;
  parallel.thread_count = 3;
  const Path one = FindPath(network, options).value();
  const Path three = FindPath(network, parallel).value();
  EXPECT_EQ(one.tree, three.tree);
  EXPECT_EQ(one.sliced, three.sliced);
  EXPECT_EQ(one.tried_count, three.tried_count);
}

TEST(AnnealSearchTest, DoesWithoutThreadsThatCannotBeMade) {
  std::mt19937 rng(3);
  const Network network = tensord::test::RegularNetwork(rng, 18, 3, 2);
  const PathOptions options = {.time_budget = absl::Hours(1),
                               .max_result = 32,
                               .seed = 4,
                               .thread_count = 3};
  const Path with = FindPath(network, options).value();
  const tensord::test::NoThreads no_threads;
  const Path without = FindPath(network, options).value();
  EXPECT_EQ(with.tree, without.tree);
  EXPECT_EQ(with.tried_count, without.tried_count);
}

TEST(FindPathTest, ResultsKeepToTheirOwnLimit) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Network network = tensord::test::RegularNetwork(rng, 24, 4, 2);
    // Without slicing the largest result has 2^7 elements or more here.
    const PathOptions limited = {.time_budget = absl::Milliseconds(20),
                                 .max_result = 32};
    const Path path = FindPath(network, limited).value();
    EXPECT_THAT(path.sliced, Not(IsEmpty()));
    EXPECT_EQ(path.method, PathMethod::kAnnealing);
    ASSERT_TRUE(tensord::test::IsTree(24, path.tree));
    const TreeCost cost =
        tensord::test::CostByDefinition(network, path.tree, path.sliced);
    EXPECT_LE(cost.largest, limited.max_result);
    EXPECT_EQ(cost.flops, path.cost.flops);
  }
}

TEST(FindPathTest, AResultAboveTheLimitIsRefused) {
  const Network network = {{{0, 1}, {1, 2}, {2, 3}}, {0, 3}, {10, 10, 10, 10}};
  const auto path = FindPath(
      network, {.time_budget = absl::Milliseconds(1), .max_result = 99});
  EXPECT_EQ(path.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(path.status().message(),
              testing::HasSubstr("to 99 elements; the least found is 100"));
}

TEST(FindPathTest, ASearchGoesOnFromAPath) {
  std::mt19937 rng(5);
  const Network network = tensord::test::RegularNetwork(rng, 60, 4, 2);
  const double limit = 1 << 10;
  const Path good = FindPath(network, {.time_budget = absl::Milliseconds(300),
                                       .max_result = limit})
                        .value();
  ASSERT_LE(good.cost.largest, limit);
  const Path kept =
      FindPath(network, {.time_budget = absl::Nanoseconds(1),
                         .max_result = limit,
                         .start = PathStart{good.tree, good.sliced}})
          .value();
  EXPECT_EQ(kept.tree, good.tree);
  EXPECT_EQ(kept.sliced, good.sliced);
  const Path better =
      FindPath(network, {.time_budget = absl::Milliseconds(100),
                         .max_result = limit,
                         .start = PathStart{good.tree, good.sliced}})
          .value();
  EXPECT_LE(better.cost.flops, good.cost.flops);
}

}  // namespace
}  // namespace tensord::core
