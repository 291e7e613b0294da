#include <cmath>
#include <random>
#include <vector>

#include "core/base/status.h"
#include "core/notation/path/find_path.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/notation/path/random_network.h"

namespace tensord::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SlicePathTest, SlicesTheIndexThatCostsLeast) {
  // Two stacks of matrices; index 0 runs through all of it.
  const Network network = {
      {{0, 1, 2}, {0, 2, 3}, {0, 3, 4}}, {0, 1, 4}, {8, 4, 4, 4, 4}};
  const ContractionTree tree = {{{0, 1}, {2, 3}}};
  const Path whole = SlicePath(network, tree, 1e9).value();
  EXPECT_THAT(whole.sliced, IsEmpty());
  EXPECT_EQ(whole.method, PathMethod::kGiven);
  EXPECT_EQ(whole.tree, tree);
  EXPECT_EQ(whole.cost.peak, 128 + 128);
  const Path sliced = SlicePath(network, tree, 200).value();
  EXPECT_THAT(sliced.sliced, ElementsAre(0));
  EXPECT_EQ(sliced.cost.peak, 128 + 16);
  EXPECT_EQ(sliced.cost.flops, whole.cost.flops);
}

TEST(SlicePathTest, ALimitBelowTheResultIsRefused) {
  const Network network = {{{0, 1}, {1, 2}}, {0, 2}, {10, 10, 10}};
  const auto path = SlicePath(network, {{{0, 1}}}, 99);
  EXPECT_EQ(path.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(path.status()), "PATH_MEMORY_LIMIT");
  EXPECT_THAT(path.status().message(), HasSubstr("to 99 elements"));
  EXPECT_THAT(path.status().message(), HasSubstr("least found is 100"));
}

TEST(FindPathTest, MemoryLimitsAreKept) {
  int sliced_count = 0, refused_count = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const bool is_large = seed % 20 == 0;
    const Network network = tensord::test::RandomNetwork(
        rng, {.max_inputs = is_large ? 24 : 8,
              .max_indices = is_large ? 40 : 16,
              .max_occurrences = 2 + static_cast<int>(seed % 3)});
    const PathMethod method =
        seed % 2 == 0 ? PathMethod::kAuto : PathMethod::kGreedy;
    PathOptions options = {.method = method,
                           .time_budget = absl::Milliseconds(1)};
    const Path free = FindPath(network, options).value();
    options.max_peak = std::floor(free.cost.peak * (rng() % 100) / 100);
    const auto path = FindPath(network, options);
    if (!path.ok()) {
      EXPECT_EQ(ReasonOf(path.status()), "PATH_MEMORY_LIMIT");
      EXPECT_GT(LeastPeakOf(path.status()), options.max_peak);
      ++refused_count;
      // A search of large ones may have found another tree in its time.
      if (is_large) continue;
      // Slicing everything would not have kept to it.
      std::vector<int32_t> all;
      for (size_t i = 0; i < network.extents.size(); ++i) {
        all.push_back(static_cast<int32_t>(i));
      }
      EXPECT_GT(tensord::test::CostByDefinition(network, free.tree, all).peak,
                options.max_peak);
      continue;
    }
    const TreeCost cost =
        tensord::test::CostByDefinition(network, path->tree, path->sliced);
    EXPECT_LE(cost.peak, options.max_peak);
    EXPECT_EQ(path->cost.peak, cost.peak);
    EXPECT_EQ(path->cost.flops, cost.flops);
    sliced_count += path->sliced.empty() ? 0 : 1;
  }
  EXPECT_GT(sliced_count, 40);
  EXPECT_GT(refused_count, 40);
}

TEST(FindPathTest, MoreTimeForSlicingIsNeverWorse) {
  for (uint32_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Network network = tensord::test::RegularNetwork(rng, 14, 4, 3);
    const Path free =
        FindPath(network, {.method = PathMethod::kOptimal}).value();
    const double limit = free.cost.peak / 20;
    const Path given = SlicePath(network, free.tree, limit).value();
    const Path searched =
        FindPath(network, {.method = PathMethod::kOptimal,
                           .time_budget = absl::Milliseconds(5),
                           .max_peak = limit})
            .value();
    EXPECT_LE(searched.cost.flops, given.cost.flops);
    EXPECT_LE(searched.cost.peak, limit);
    EXPECT_THAT(searched.sliced, testing::Not(IsEmpty()));
  }
}

}  // namespace
}  // namespace tensord::core
