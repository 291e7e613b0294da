#include "core/notation/path/find_path.h"

#include <bit>
#include <random>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/notation/path/mend.h"
#include "core/notation/path/optimal_tree.h"
#include "core/notation/path/search_tree.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/case_share.h"
#include "tests/unit/core/notation/path/random_network.h"

namespace tensord::core {
namespace {

using ::testing::HasSubstr;

constexpr PathMethod kSearches[] = {
    PathMethod::kAuto, PathMethod::kOptimal, PathMethod::kGreedy,
    PathMethod::kRandomGreedy, PathMethod::kPartition};
const absl::Duration kLong = absl::Hours(1);  // more than any search takes

void ExpectSoundPath(const Network& network, const Path& path) {
  ASSERT_TRUE(tensord::test::IsTree(static_cast<int>(network.inputs.size()),
                                    path.tree));
  const TreeCost cost =
      tensord::test::CostByDefinition(network, path.tree, path.sliced);
  EXPECT_EQ(path.cost.flops, cost.flops);
  EXPECT_EQ(path.cost.peak, cost.peak);
  EXPECT_EQ(path.cost.largest, cost.largest);
  EXPECT_EQ(path.cost.written, cost.written);
  EXPECT_NE(path.method, PathMethod::kAuto);
}

TEST(FindPathTest, TheCheapEndOfAChainGoesFirst) {
  const Network chain = {{{0, 1}, {1, 2}, {2, 3}}, {0, 3}, {50, 4, 30, 2}};
  for (const PathMethod method : kSearches) {
    SCOPED_TRACE(NameOf(method));
    const Path path = FindPath(chain, {.method = method}).value();
    EXPECT_EQ(path.cost.flops, 2 * 4 * 30 * 2 + 2 * 50 * 4 * 2);
  }
}

// Issue 26.
TEST(FindPathTest, SumsOverOneElementAreFree) {
  const Network network = {{{0, 1}, {1, 2}, {2}}, {}, {1, 4, 5}};
  EXPECT_EQ(FindPath(network, {}).value().cost.flops, 2 * 4 * 5 + 2 * 4);
}

TEST(FindPathTest, OptimalIsTheLeastOfAllTrees) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Network network = tensord::test::RandomNetwork(
        rng, {.max_inputs = 6,
              .max_indices = 12,
              .max_extent = seed % 4 == 0 ? 1 : 6,
              .max_occurrences = 2 + static_cast<int>(seed % 4)});
    const Path path =
        FindPath(network, {.method = PathMethod::kOptimal}).value();
    ExpectSoundPath(network, path);
    EXPECT_EQ(path.cost.flops, tensord::test::LeastFlops(network));
  }
}

TEST(FindPathTest, OptimalOfSevenIsTheLeastOfAllTrees) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Network network = tensord::test::RandomNetwork(
        rng, {.min_inputs = 7, .max_inputs = 7, .max_indices = 16});
    EXPECT_EQ(
        FindPath(network, {.method = PathMethod::kOptimal}).value().cost.flops,
        tensord::test::LeastFlops(network));
  }
}

TEST(FindPathTest, OptimalKnowsMoreHyperindicesThanAWordHasBits) {
  for (uint32_t seed = 0; seed < 3; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    Network network;
    network.inputs.resize(6);
    // Every set of three and more inputs, with the output and without.
    for (uint32_t set = 0; set < 64; ++set) {
      if (std::popcount(set) < 3) continue;
      for (const bool is_in_output : {false, true}) {
        const auto index = static_cast<int32_t>(network.extents.size());
        network.extents.push_back(1 + static_cast<int64_t>(rng() % 2));
        if (is_in_output) network.output.push_back(index);
        for (int i = 0; i < 6; ++i) {
          if ((set >> i & 1) != 0) network.inputs[i].push_back(index);
        }
      }
    }
    const double least = tensord::test::LeastFlops(network);
    // Sums of so large numbers are rounded.
    EXPECT_NEAR(
        FindPath(network, {.method = PathMethod::kOptimal}).value().cost.flops,
        least, least * 1e-12);
  }
}

TEST(FindPathTest, OptimalTakesOuterProductsThatPay) {
  // Two small vectors, both against one large matrix.
  const Network network = {{{0}, {1}, {0, 1, 2}}, {2}, {2, 2, 1000}};
  const Path path = FindPath(network, {.method = PathMethod::kOptimal}).value();
  EXPECT_EQ(path.cost.flops, 4 + 2 * 4000);
}

TEST(FindPathTest, OptimalRefusesMoreInputsThanItTakes) {
  Network network;
  network.inputs.resize(kOptimalInputLimit);
  EXPECT_TRUE(FindPath(network, {.method = PathMethod::kOptimal}).ok());
  network.inputs.resize(kOptimalInputLimit + 1);
  const auto path = FindPath(network, {.method = PathMethod::kOptimal});
  EXPECT_EQ(path.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(path.status()), "PATH_SEARCH_TOO_LARGE");
  EXPECT_THAT(path.status().message(), HasSubstr("17 operands"));
  EXPECT_THAT(path.status().message(), HasSubstr("at most 16"));
}

TEST(FindPathTest, EveryMethodFindsSoundPathsOfEverySort) {
  for (uint32_t seed = 0; seed < 150; ++seed) {
    std::mt19937 rng(seed);
    const Network network = tensord::test::RandomNetwork(
        rng, {.max_inputs = seed % 10 == 0 ? 40 : 12,
              .max_indices = seed % 10 == 0 ? 60 : 20,
              .max_extent = 3,
              .max_occurrences = 2 + static_cast<int>(seed % 5)});
    for (const PathMethod method : kSearches) {
      if (method == PathMethod::kOptimal && network.inputs.size() > 10)
        continue;
      SCOPED_TRACE(absl::StrCat(seed, " ", NameOf(method)));
      const auto path = FindPath(
          network, {.method = method, .time_budget = absl::Milliseconds(2)});
      ASSERT_TRUE(path.ok()) << path.status();
      ExpectSoundPath(network, *path);
    }
  }
}

TEST(FindPathTest, NoMethodIsBelowOptimalAndAutoIsOptimalWhereSmall) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 rng(seed);
    const Network network = tensord::test::RandomNetwork(
        rng, {.min_inputs = 4, .max_inputs = 9, .max_indices = 18});
    const double least =
        FindPath(network, {.method = PathMethod::kOptimal}).value().cost.flops;
    for (const PathMethod method : kSearches) {
      SCOPED_TRACE(absl::StrCat(seed, " ", NameOf(method)));
      const Path path =
          FindPath(network,
                   {.method = method, .time_budget = absl::Milliseconds(1)})
              .value();
      EXPECT_GE(path.cost.flops, least);
      if (method == PathMethod::kAuto) {
        EXPECT_EQ(path.cost.flops, least);
      }
    }
  }
}

TEST(FindPathTest, ASingleInputNeedsNoSteps) {
  const Network network = {{{0, 1}}, {1}, {4, 5}};
  for (const PathMethod method : kSearches) {
    const Path path = FindPath(network, {.method = method}).value();
    EXPECT_TRUE(path.tree.steps.empty());
    EXPECT_EQ(path.cost.flops, 20);
  }
}

TEST(FindPathTest, ExtentsBeyondDoublesStillGiveATree) {
  // Every two inputs share an index.
  const auto network_of = [](int32_t input_count) {
    Network network;
    network.inputs.resize(input_count);
    for (int32_t i = 0; i < input_count; ++i) {
      for (int32_t j = 0; j < i; ++j) {
        const auto index = static_cast<int32_t>(network.extents.size());
        network.inputs[i].push_back(index);
        network.inputs[j].push_back(index);
        network.extents.push_back(int64_t{1} << 62);
      }
    }
    return network;
  };
  const Network network = network_of(20);
  for (const PathMethod method :
       {PathMethod::kAuto, PathMethod::kGreedy, PathMethod::kPartition}) {
    const Path path = FindPath(network, {.method = method,
                                         .time_budget = absl::Milliseconds(1)})
                          .value();
    EXPECT_TRUE(tensord::test::IsTree(20, path.tree));
  }
  EXPECT_TRUE(tensord::test::IsTree(
      10,
      FindPath(network_of(10), {.method = PathMethod::kOptimal}).value().tree));
}

TEST(FindPathTest, EqualSeedsFindEqualPathsWhenTheTimeSuffices) {
  for (const PathMethod method : kSearches) {
    SCOPED_TRACE(NameOf(method));
    std::mt19937 rng(7);
    const Network network = tensord::test::RegularNetwork(
        rng, method == PathMethod::kOptimal ? 11 : 18, 3, 2);
    const PathOptions options = {
        .method = method, .time_budget = kLong, .seed = 5};
    const Path first = FindPath(network, options).value();
    const Path second = FindPath(network, options).value();
    EXPECT_EQ(first.tree, second.tree);
    EXPECT_EQ(first.tried_count, second.tried_count);
    EXPECT_EQ(first.method, second.method);
  }
}

TEST(FindPathTest, RandomSearchIsNeverBehindGreedy) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Network network = tensord::test::RegularNetwork(rng, 40, 3, 3);
    const double greedy =
        FindPath(network, {.method = PathMethod::kGreedy}).value().cost.flops;
    for (const PathMethod method :
         {PathMethod::kRandomGreedy, PathMethod::kPartition}) {
      EXPECT_LE(FindPath(network, {.method = method,
                                   .time_budget = absl::Milliseconds(5)})
                    .value()
                    .cost.flops,
                greedy);
    }
  }
}

TEST(FindPathTest, ThousandsOfTensorsAreSearched) {
  std::mt19937 rng(1);
  const Network network = tensord::test::RegularNetwork(rng, 3000, 2, 2);
  for (const PathMethod method : kSearches) {
    if (method == PathMethod::kOptimal) continue;
    SCOPED_TRACE(NameOf(method));
    const Path path = FindPath(network, {.method = method,
                                         .time_budget = absl::Milliseconds(10)})
                          .value();
    EXPECT_TRUE(tensord::test::IsTree(3000, path.tree));
  }
}

TEST(MenderTest, NeverMakesATreeWorse) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Network network = tensord::test::RandomNetwork(
        rng, {.min_inputs = 2,
              .max_inputs = 25,
              .max_indices = 40,
              .max_occurrences = 2 + static_cast<int>(seed % 3)});
    const int input_count = static_cast<int>(network.inputs.size());
    const ContractionTree given = tensord::test::RandomTree(rng, input_count);
    const double before = tensord::test::CostByDefinition(network, given).flops;
    const SearchGraph graph = GraphOf(network);
    const Deadline never(absl::InfiniteDuration());
    Random random(seed);
    Mender mender(graph);

    SearchTree mended = TreeOf(graph, given.steps);
    mender.Mend(mended, 6, 2, random, never);
    const ContractionTree after = ContractionTreeOf(mended);
    ASSERT_TRUE(tensord::test::IsTree(input_count, after));
    const double mended_flops =
        tensord::test::CostByDefinition(network, after).flops;
    EXPECT_LE(mended_flops, before * (1 + 1e-9));

    SearchTree annealed = TreeOf(graph, after.steps);
    mender.Anneal(annealed, 20, 1, 0.1, random, never);
    const ContractionTree turned = ContractionTreeOf(annealed);
    ASSERT_TRUE(tensord::test::IsTree(input_count, turned));
    EXPECT_LE(tensord::test::CostByDefinition(network, turned).flops,
              mended_flops * (1 + 1e-9));
  }
}

TEST(MenderTest, PartsAsLargeAsTheTreeMakeItOptimal) {
  for (uint32_t seed = 0; seed < tensord::test::CaseShare(50); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Network network = tensord::test::RandomNetwork(
        rng, {.min_inputs = 3, .max_inputs = 7, .max_indices = 15});
    const int input_count = static_cast<int>(network.inputs.size());
    const SearchGraph graph = GraphOf(network);
    SearchTree tree =
        TreeOf(graph, tensord::test::RandomTree(rng, input_count).steps);
    Random random(seed);
    Mender(graph).Mend(tree, input_count, 0, random,
                       Deadline(absl::InfiniteDuration()));
    EXPECT_EQ(
        tensord::test::CostByDefinition(network, ContractionTreeOf(tree)).flops,
        tensord::test::LeastFlops(network));
  }
}

}  // namespace
}  // namespace tensord::core
