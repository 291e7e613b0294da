#include "core/backend/cuda/contraction/side_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "core/backend/cuda/kernel/index_space.h"
#include "tests/testing/case_share.h"

namespace tensord::core::cuda {
namespace {

constexpr size_t kInput = ContractionProblem::kFreeInput;
constexpr size_t kD = ContractionProblem::kFreeD;

/// The modes of `extents` in the order of d; the input has them in the order
/// `of_input`, its fastest first.
LoopModes<3> ModesOf(const std::vector<int64_t>& extents,
                     const std::vector<size_t>& of_input) {
  LoopModes<3> modes;
  int64_t stride = 1;
  for (const int64_t extent : extents) {
    modes.push_back({extent, {0, stride, stride}});
    stride *= extent;
  }
  stride = 1;
  for (const size_t mode : of_input) {
    modes[mode].strides[kInput] = stride;
    stride *= extents[mode];
  }
  return modes;
}

/// Offsets of one operand in the order's counting; none beyond a cut mode.
std::vector<std::optional<int64_t>> OffsetsOf(const LoopModes<3>& modes,
                                              const SideOrder& order,
                                              size_t operand) {
  std::vector<std::optional<int64_t>> offsets;
  for (int64_t index = 0; index < order.count; ++index) {
    int64_t rest = index, offset = 0;
    std::array<int64_t, SideOrder::kMostCuts> places = {};
    for (const SideOrder::Piece& piece : order.pieces) {
      const int64_t place = rest % piece.extent * piece.multiple;
      rest /= piece.extent;
      offset += place * modes[piece.mode].strides[operand];
      if (piece.cut >= 0) places[piece.cut] += place;
    }
    const bool is_there =
        places[0] < order.cut_extents[0] && places[1] < order.cut_extents[1];
    offsets.push_back(is_there ? std::optional(offset) : std::nullopt);
  }
  return offsets;
}

/// That each element is counted exactly once.
void ExpectAllOnce(const LoopModes<3>& modes, const SideOrder& order) {
  for (const size_t operand : {kInput, kD}) {
    std::vector<int64_t> found;
    for (const auto& offset : OffsetsOf(modes, order, operand)) {
      if (offset.has_value()) found.push_back(*offset);
    }
    std::sort(found.begin(), found.end());
    ASSERT_EQ(static_cast<int64_t>(found.size()), ElementCount(modes));
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i], static_cast<int64_t>(i));
    }
  }
}

TEST(SideOrderTest, BlocksHoldRunsOfBothOrders) {
  const LoopModes<3> modes = ModesOf({24, 20, 40}, {2, 1, 0});
  const auto order = OrderInBlocks(modes, 3, 4);
  ASSERT_TRUE(order.has_value());
  ExpectAllOnce(modes, *order);
  EXPECT_EQ(order->run_d, 8);
  EXPECT_EQ(order->run_input, 16);
  EXPECT_EQ(order->log_d, 3u);
  EXPECT_EQ(order->log_input, 4u);
  // 24 are 3 blocks of 8, 40 come in 3 blocks of 16.
  EXPECT_EQ(order->count, 24 * 20 * 48);
  const auto of_d = OffsetsOf(modes, *order, kD);
  const auto of_input = OffsetsOf(modes, *order, kInput);
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 16; ++j) {
      EXPECT_EQ(of_d[i + 8 * j], i + 24 * 20 * j);
      EXPECT_EQ(of_input[i + 8 * j], j + 40 * 20 * i);
    }
  }
}

TEST(SideOrderTest, SmallModesMakeUpABlockTogether) {
  const std::vector<int64_t> twos(10, 2);
  const LoopModes<3> modes = ModesOf(twos, {9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  const auto order = OrderInBlocks(modes, 3, 4);
  ASSERT_TRUE(order.has_value());
  ExpectAllOnce(modes, *order);
  EXPECT_EQ(order->count, 1024);
  EXPECT_EQ(order->run_d, 8);
  EXPECT_EQ(order->run_input, 16);
}

TEST(SideOrderTest, BlocksNeedTwoOrders) {
  EXPECT_FALSE(OrderInBlocks(ModesOf({24, 20}, {0, 1}), 3, 4).has_value());
  EXPECT_FALSE(OrderInBlocks(ModesOf({1000}, {0}), 3, 4).has_value());
  EXPECT_FALSE(OrderInBlocks({}, 3, 4).has_value());
}

TEST(SideOrderTest, BlocksThatReachBeyondAnIndexAreNone) {
  // 2^30 elements; blocks of 129 by 16 would have some 2^31.
  const LoopModes<3> modes = ModesOf({1 << 14, (1 << 16) + 1}, {1, 0});
  EXPECT_TRUE(OrderInBlocks(modes, 3, 4).has_value());
  const LoopModes<3> large = ModesOf({46340, 46341}, {1, 0});
  EXPECT_FALSE(OrderInBlocks(large, 3, 4).has_value());
}

TEST(SideOrderTest, EveryOrderCountsEachElementOnce) {
  std::mt19937 random(5);
  std::set<bool> had_blocks;
  for (uint32_t trial = 0; trial < tensord::test::CaseShare(3000); ++trial) {
    std::vector<int64_t> extents(1 + random() % 5);
    std::vector<size_t> of_input(extents.size());
    for (size_t i = 0; i < extents.size(); ++i) {
      extents[i] = 2 + static_cast<int64_t>(random() % 9);
      of_input[i] = i;
    }
    std::shuffle(of_input.begin(), of_input.end(), random);
    const LoopModes<3> modes = ModesOf(extents, of_input);
    SCOPED_TRACE(trial);
    ExpectAllOnce(modes, OrderOfD(modes));
    ExpectAllOnce(modes, OrderOfInput(modes));
    EXPECT_EQ(OrderOfInput(modes).run_input, ElementCount(modes));
    EXPECT_EQ(OrderOfD(modes).run_d, ElementCount(modes));
    const auto blocks =
        OrderInBlocks(modes, 1 + random() % 4, 1 + random() % 4);
    had_blocks.insert(blocks.has_value());
    if (blocks.has_value()) ExpectAllOnce(modes, *blocks);
  }
  EXPECT_EQ(had_blocks.size(), 2u);
}

}  // namespace
}  // namespace tensord::core::cuda
