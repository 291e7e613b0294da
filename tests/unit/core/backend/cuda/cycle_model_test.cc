#include "core/backend/cuda/cycle_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace tensord::core::cuda {
namespace {

std::vector<int64_t> Every(int64_t count, int64_t step = 1) {
  std::vector<int64_t> words(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) words[static_cast<size_t>(i)] = i * step;
  return words;
}

// B3.5
TEST(CycleParametersTest, AreThoseOfThePaper) {
  EXPECT_EQ(CyclesOf(3), (CycleParameters{14, 358, 11, 50}));
  EXPECT_EQ(CyclesOf(5), (CycleParameters{2.5, 385, 1, 220}));
  EXPECT_EQ(CyclesOf(6), (CycleParameters{2.8, 485, 1, 260}));
}

TEST(CycleParametersTest, LaterArchitecturesTakeThoseOfTheLastKnownOne) {
  EXPECT_EQ(CyclesOf(7), CyclesOf(6));
  EXPECT_EQ(CyclesOf(12), CyclesOf(9));
}

TEST(TileAccessesTest, AlignedRunTakesOneTransactionAWarp) {
  const TileAccesses tile(Every(1024), 4, Every(1024), 4);
  const AccessCounts counts = tile.Count(0, 0);
  EXPECT_EQ(counts.load_requests, 32);
  EXPECT_EQ(counts.load_transactions, 32);
  EXPECT_EQ(counts.store_requests, 32);
  EXPECT_EQ(counts.store_transactions, 32);
  EXPECT_EQ(counts.full_lines, 128);
  EXPECT_EQ(counts.partial_lines, 0);
}

TEST(TileAccessesTest, ShiftedRunTakesTwoAndLeavesLinesIncomplete) {
  const TileAccesses tile(Every(1024), 4, Every(1024), 4);
  const AccessCounts counts = tile.Count(1, 1);
  EXPECT_EQ(counts.load_transactions, 64);
  EXPECT_EQ(counts.store_transactions, 64);
  EXPECT_EQ(counts.full_lines, 127);
  EXPECT_EQ(counts.partial_lines, 2);
}

TEST(TileAccessesTest, StridedWordsTakeATransactionEach) {
  const TileAccesses tile(Every(64, 32), 4, Every(64, 8), 4);
  const AccessCounts counts = tile.Count(0, 0);
  EXPECT_EQ(counts.load_transactions, 64);
  // Eight words of a warp lie in 128 bytes.
  EXPECT_EQ(counts.store_transactions, 16);
  EXPECT_EQ(counts.full_lines, 0);
  EXPECT_EQ(counts.partial_lines, 64);
}

TEST(TileAccessesTest, LinesAreThoseOfTheTileNotOfAWarp) {
  // Two warps write the halves of every line.
  std::vector<int64_t> stores;
  for (int64_t half = 0; half < 2; ++half) {
    for (int64_t i = 0; i < 32; ++i) {
      stores.push_back(i / 4 * 8 + half * 4 + i % 4);
    }
  }
  const TileAccesses tile(Every(64), 4, stores, 4);
  const AccessCounts counts = tile.Count(0, 0);
  EXPECT_EQ(counts.full_lines, 8);
  EXPECT_EQ(counts.partial_lines, 0);
}

/// By definition: of every warp the distinct segments, of all words the lines.
AccessCounts CountOneByOne(const std::vector<int64_t>& words, int64_t base,
                           int bytes) {
  AccessCounts counts;
  std::map<int64_t, int64_t> covered;
  for (size_t first = 0; first < words.size(); first += 32) {
    std::set<int64_t> segments;
    for (size_t i = first; i < std::min(first + 32, words.size()); ++i) {
      const int64_t byte = (base + words[i]) * bytes;
      segments.insert(byte / 128);
      covered[byte / 32] += bytes;
    }
    counts.load_requests += 1;
    counts.load_transactions += static_cast<double>(segments.size());
  }
  for (const auto& [line, line_bytes] : covered) {
    (line_bytes == 32 ? counts.full_lines : counts.partial_lines) += 1;
  }
  return counts;
}

TEST(TileAccessesTest, RunsCountAsTheirWordsDo) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::set<int64_t> distinct;
    std::vector<int64_t> words;
    const size_t count = 1 + random() % 300;
    while (words.size() < count) {
      const auto start = static_cast<int64_t>(random() % 2000);
      const auto length = static_cast<int64_t>(1 + random() % 40);
      for (int64_t i = 0; i < length; ++i) {
        if (distinct.insert(start + i).second) words.push_back(start + i);
      }
    }
    const int bytes = 1 << random() % 5;
    const auto base = static_cast<int64_t>(random() % 200);
    const AccessCounts expected = CountOneByOne(words, base, bytes);
    const AccessCounts counts =
        TileAccesses(words, bytes, words, bytes).Count(base, base);
    ASSERT_EQ(counts.load_requests, expected.load_requests);
    ASSERT_EQ(counts.load_transactions, expected.load_transactions);
    ASSERT_EQ(counts.store_transactions, expected.load_transactions);
    ASSERT_EQ(counts.full_lines, expected.full_lines);
    ASSERT_EQ(counts.partial_lines, expected.partial_lines);
  }
}

TEST(TileAccessesTest, TilesOfEqualAlignmentCostTheSame) {
  std::vector<int64_t> words;
  for (int64_t i = 0; i < 200; ++i) words.push_back(i / 7 * 45 + i % 7 * 3);
  for (const int bytes : {1, 4, 16}) {
    const TileAccesses tile(words, bytes, words, bytes);
    const int64_t period = 128 / bytes;
    for (int64_t base = 0; base < period; base += 3) {
      const int64_t far = base + 1001 * period;
      EXPECT_EQ(tile.AlignmentOf(base, 0), tile.AlignmentOf(far, period));
      const AccessCounts near = tile.Count(base, 0);
      const AccessCounts same = tile.Count(far, period);
      EXPECT_EQ(near.load_transactions, same.load_transactions);
      EXPECT_EQ(near.store_transactions, same.store_transactions);
      EXPECT_EQ(near.full_lines, same.full_lines);
      EXPECT_EQ(near.partial_lines, same.partial_lines);
    }
    if (bytes < 16) {
      EXPECT_NE(tile.AlignmentOf(0, 0), tile.AlignmentOf(1, 0));
    }
  }
}

struct Golden {
  GpuModel model;
  KernelShape kernel;
  AccessCounts accesses;
  double cycles;
};

// B3.4: worked out from the paper's equations apart from the product.
TEST(TurnCyclesTest, AreThoseOfThePapersEquations) {
  const GpuModel kepler{.multiprocessor_count = 13,
                        .memory_bytes_per_ns = 250,
                        .clock_ghz = 0.732,
                        .cycles = CyclesOf(3)};
  const GpuModel pascal{.multiprocessor_count = 56,
                        .memory_bytes_per_ns = 732,
                        .clock_ghz = 1.328,
                        .cycles = CyclesOf(6)};
  const Golden cases[] = {
      // Limited by the warps that there are.
      {kepler, {8, 48, 4, 1}, {32, 32, 32, 32, 128, 0}, 615.3333333333333},
      // By bandwidth, a quarter of the lines being written in part.
      {kepler, {8, 48, 4, 1}, {32, 64, 32, 64, 96, 32}, 761.640576},
      // By transactions, a lane each.
      {pascal, {8, 64, 4, 2}, {32, 1024, 32, 32, 128, 0}, 11428.436598907105},
      // By a lone block.
      {pascal, {4, 4, 1, 1}, {4, 4, 4, 4, 16, 0}, 1232.0}};
  for (const Golden& golden : cases) {
    EXPECT_DOUBLE_EQ(TurnCycles(golden.model, golden.kernel, golden.accesses),
                     golden.cycles);
  }
}

}  // namespace
}  // namespace tensord::core::cuda
