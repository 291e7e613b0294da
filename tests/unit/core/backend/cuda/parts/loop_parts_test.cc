#include "core/backend/cuda/parts/loop_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "tests/testing/case_share.h"

namespace tensord::core::cuda {
namespace {

using ::testing::ElementsAre;

constexpr size_t kD = 3;
constexpr int64_t kLimit = (int64_t{1} << 31) - 1;

/// Modes of a packed d, fastest first; the other operands have none of them.
LoopModes<4> Packed(const ModeVector& extents) {
  LoopModes<4> modes;
  int64_t stride = 1;
  for (const int64_t extent : extents) {
    modes.push_back({extent, {0, 0, 0, stride}});
    stride *= extent;
  }
  return modes;
}

int64_t Product(const ModeVector& extents) {
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  return product;
}

TEST(LoopPartsTest, WhatIsWithinTheLimitIsOnePart) {
  const LoopParts parts(Packed({10, 6}), kD, 60);
  EXPECT_EQ(parts.count(), 1);
  EXPECT_THAT(parts.extents(0), ElementsAre(10, 6));
  EXPECT_THAT(parts.first(0), ElementsAre(0, 0));
  EXPECT_EQ(parts.step(0), 0);
  EXPECT_EQ(parts.step(1), 0);
}

TEST(LoopPartsTest, NothingIsOnePart) {
  EXPECT_EQ(LoopParts({LoopMode<4>{0, {}}}, kD, 1).count(), 1);
  EXPECT_EQ(LoopParts({}, kD, 1).count(), 1);
}

TEST(LoopPartsTest, TheSlowestModeIsDivided) {
  const LoopParts equal(Packed({1000, 6}), kD, 3000);
  ASSERT_EQ(equal.count(), 2);
  EXPECT_THAT(equal.extents(0), ElementsAre(1000, 3));
  EXPECT_THAT(equal.extents(1), ElementsAre(1000, 3));
  EXPECT_THAT(equal.first(1), ElementsAre(0, 3));
  EXPECT_EQ(equal.shapes().size(), 1u);
  EXPECT_EQ(LoopParts(Packed({1000, 6}), kD, 2500).count(), 3);
  const LoopParts shorter(Packed({1000, 3}), kD, 2500);
  ASSERT_EQ(shorter.count(), 2);
  EXPECT_THAT(shorter.extents(0), ElementsAre(1000, 2));
  EXPECT_THAT(shorter.extents(1), ElementsAre(1000, 1));
  EXPECT_EQ(shorter.shapes().size(), 2u);
}

TEST(LoopPartsTest, ModesTooShortToSufficeAreTakenOneByOne) {
  const LoopParts singles(Packed({300, 5, 3, 4}), kD, 300);
  EXPECT_EQ(singles.count(), 60);
  EXPECT_THAT(singles.extents(0), ElementsAre(300, 1, 1, 1));
  const LoopParts pairs(Packed({300, 5, 3, 4}), kD, 600);
  EXPECT_EQ(pairs.count(), 36);
  EXPECT_THAT(pairs.extents(0), ElementsAre(300, 2, 1, 1));
  EXPECT_THAT(pairs.extents(2), ElementsAre(300, 1, 1, 1));
}

TEST(LoopPartsTest, AModeThatSufficesIsPreferredToSlowerOnesThatDoNot) {
  const LoopParts parts(Packed({1 << 11, 1 << 20, 3}), kD, kLimit);
  EXPECT_EQ(parts.count(), 4);
  EXPECT_THAT(parts.extents(0), ElementsAre(1 << 11, 1 << 18, 3));
}

TEST(LoopPartsTest, RunsStayWholeEvenIfThatTakesMoreParts) {
  // The fastest mode alone would suffice, element by element.
  ModeVector extents(7, 32);
  extents[0] = 64;
  const LoopParts parts(Packed(extents), kD, kLimit);
  EXPECT_EQ(parts.extents(0)[0], 64);
  EXPECT_LE(parts.count(), 64);
}

TEST(LoopPartsTest, PartsBeginAtMultiplesOfARun) {
  const int64_t odd = 3'000'000'019;
  for (const int64_t stride_a : {1, 2, 3, 64, 1000, 4096}) {
    const LoopParts parts(LoopModes<4>{{odd, {stride_a, 0, 0, 1}}}, kD, kLimit);
    EXPECT_EQ(parts.count(), 2);
    EXPECT_EQ(parts.step(0) % LoopParts::kRunElements, 0);
    EXPECT_LT(parts.step(0) - odd / 2, LoopParts::kRunElements);
  }
}

TEST(LoopPartsTest, SlowModesAreDividedEvenly) {
  const LoopParts parts(
      LoopModes<4>{{1 << 20, {1, 0, 0, 1}}, {4098, {1 << 20, 0, 0, 1 << 20}}},
      kD, kLimit);
  EXPECT_EQ(parts.count(), 3);
  EXPECT_THAT(parts.extents(2), ElementsAre(1 << 20, 1366));
}

TEST(LoopPartsTest, CountsThatOverflowSaturate) {
  const int64_t huge = int64_t{1} << 40;
  const LoopParts parts(
      LoopModes<4>{{huge, {1, 0, 0, 0}}, {huge, {0, 1, 0, 0}}}, 0, 1);
  EXPECT_EQ(parts.count(), std::numeric_limits<int64_t>::max());
}

LoopModes<4> RandomModes(std::mt19937& rng) {
  const auto pick = [&](uint32_t count) {
    return static_cast<int64_t>(rng() % count);
  };
  LoopModes<4> modes;
  int64_t room = 3000;
  const int64_t mode_count = pick(6);
  for (int64_t m = 0; m < mode_count; ++m) {
    const int64_t extent = std::min(2 + pick(40), room);
    if (extent < 2) break;
    room /= extent;
    modes.push_back({extent, {pick(300), pick(3), pick(300), 1 + pick(3000)}});
  }
  return modes;
}

TEST(LoopPartsTest, EveryElementIsInOnePart) {
  for (uint32_t seed = 0; seed < tensord::test::CaseShare(2000); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const LoopModes<4> modes = RandomModes(rng);
    const int64_t limit = 1 + static_cast<int64_t>(rng() % 500);
    const LoopParts parts(modes, kD, limit);
    std::set<std::vector<int64_t>> seen;
    std::vector<int64_t> by_shape(parts.shapes().size(), 0);
    for (int64_t number = 0; number < parts.count(); ++number) {
      const ModeVector first = parts.first(number);
      const ModeVector& extents = parts.extents(number);
      ASSERT_LE(Product(extents), limit);
      ++by_shape[parts.shape(number)];
      for (int64_t i = 0; i < Product(extents); ++i) {
        std::vector<int64_t> at;
        int64_t rest = i;
        for (size_t m = 0; m < modes.size(); ++m) {
          at.push_back(first[m] + rest % extents[m]);
          rest /= extents[m];
          ASSERT_LT(at.back(), modes[m].extent);
        }
        ASSERT_TRUE(seen.insert(at).second) << "twice";
      }
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), ElementCount(modes));
    for (size_t shape = 0; shape < by_shape.size(); ++shape) {
      EXPECT_EQ(by_shape[shape], parts.shapes()[shape].count);
    }
  }
}

TEST(LoopPartsTest, LongSlowModesGiveAtMostTwiceThePartsThatAreNeeded) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    ModeVector extents;
    int64_t count = 1;
    while (count <= kLimit) {
      extents.push_back(2 + static_cast<int64_t>(rng() % 5000));
      count *= extents.back();
    }
    const LoopParts parts(Packed(extents), kD, kLimit);
    EXPECT_LE(parts.count(), 2 * (count / kLimit + 1));
  }
}

}  // namespace
}  // namespace tensord::core::cuda
