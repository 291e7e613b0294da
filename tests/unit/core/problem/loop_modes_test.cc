#include "core/problem/loop_modes.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace tensord::core {
namespace {

using Modes2 = LoopModes<2>;
using Address = std::array<int64_t, 2>;

/// Every combination of addresses, sorted.
std::vector<Address> Addresses(const Modes2& modes) {
  std::vector<Address> addresses = {{0, 0}};
  for (const auto& mode : modes) {
    std::vector<Address> longer;
    for (int64_t i = 0; i < mode.extent; ++i) {
      for (const Address& at : addresses) {
        longer.push_back(
            {at[0] + i * mode.strides[0], at[1] + i * mode.strides[1]});
      }
    }
    addresses = std::move(longer);
  }
  std::sort(addresses.begin(), addresses.end());
  return addresses;
}

Modes2 RandomModes(std::mt19937& rng) {
  Modes2 modes;
  const auto count = rng() % 6;
  int64_t stride = 1;
  for (size_t i = 0; i < count; ++i) {
    const auto extent = static_cast<int64_t>(1 + rng() % 4);
    modes.push_back(
        {extent, {static_cast<int64_t>(rng() % 3) * stride, stride}});
    stride *= extent + static_cast<int64_t>(rng() % 5 == 0);
  }
  std::shuffle(modes.begin(), modes.end(), rng);
  return modes;
}

TEST(CanonicalTest, EvenlyAdvancingModesMerge) {
  const Modes2 modes = {{4, {3, 3}}, {3, {1, 1}}};
  EXPECT_EQ(Canonical(modes, 1), (Modes2{{12, {1, 1}}}));
}

TEST(CanonicalTest, PermutedModesStaySeparateAndFastestOfTheLeaderComesFirst) {
  const Modes2 modes = {{3, {4, 1}}, {4, {1, 3}}};
  EXPECT_EQ(Canonical(modes, 1), modes);
  EXPECT_EQ(Canonical(modes, 0), (Modes2{{4, {1, 3}}, {3, {4, 1}}}));
}

TEST(CanonicalTest, PaddedModeStaysSeparate) {
  const Modes2 modes = {{3, {1, 1}}, {4, {4, 3}}};
  EXPECT_EQ(Canonical(modes, 1), modes);
}

TEST(CanonicalTest, ExtentOneIsDropped) {
  const Modes2 modes = {{1, {77, 5}}, {3, {1, 1}}, {1, {0, 9}}};
  EXPECT_EQ(Canonical(modes, 1), (Modes2{{3, {1, 1}}}));
  EXPECT_EQ(Canonical(Modes2{{1, {2, 2}}}, 0), Modes2{});
}

TEST(CanonicalTest, ExtentZeroMakesTheWholeEmpty) {
  const Modes2 modes = {{3, {1, 1}}, {0, {3, 3}}, {5, {7, 7}}};
  EXPECT_EQ(Canonical(modes, 1), (Modes2{{0, {0, 0}}}));
  EXPECT_EQ(ElementCount(Canonical(modes, 1)), 0);
}

TEST(CanonicalTest, BroadcastModesMergeToo) {
  EXPECT_EQ(Canonical(Modes2{{3, {0, 1}}, {4, {0, 3}}}, 1),
            (Modes2{{12, {0, 1}}}));
}

TEST(CanonicalTest, KeepsEveryAddress) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    const Modes2 modes = RandomModes(rng);
    const Modes2 canonical = Canonical(modes, 1);
    ASSERT_LE(canonical.size(), modes.size());
    ASSERT_EQ(ElementCount(canonical), ElementCount(modes));
    ASSERT_EQ(Addresses(canonical), Addresses(modes));
  }
}

TEST(CanonicalTest, OrderOfModesDoesNotMatter) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 rng(seed);
    Modes2 modes = RandomModes(rng);
    const Modes2 canonical = Canonical(modes, 1);
    ASSERT_EQ(Canonical(canonical, 1), canonical) << "idempotent";
    std::shuffle(modes.begin(), modes.end(), rng);
    ASSERT_EQ(Canonical(modes, 1), canonical);
  }
}

}  // namespace
}  // namespace tensord::core
