#include "core/backend/cuda/nests.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace tensord::core::cuda {
namespace {

alignas(16) std::byte memory[1 << 12];

FillOperands OperandsOf(const LoopModes<1>& modes, int element_bytes,
                        std::ptrdiff_t at = 0) {
  FillOperands operands;
  operands.modes = modes;
  operands.d = memory + at;
  operands.element_bytes = element_bytes;
  for (int i = 0; i < element_bytes; ++i) {
    operands.value[i] = static_cast<std::byte>(i + 1);
  }
  return operands;
}

/// Addresses of all bytes that `tasks` write, each of which gets the byte of
/// `element_bytes` that it should.
std::multiset<std::ptrdiff_t> BytesOf(const std::vector<FillTask>& tasks,
                                      int element_bytes) {
  std::multiset<std::ptrdiff_t> bytes;
  for (const FillTask& task : tasks) {
    for (uint32_t i = 0; i < task.modes.count; ++i) {
      const std::ptrdiff_t first = static_cast<std::byte*>(task.d) - memory +
                                   task.modes.At(i)[0] * task.word_bytes;
      for (int byte = 0; byte < task.word_bytes; ++byte) {
        EXPECT_EQ(task.value[byte], byte % element_bytes + 1);
        bytes.insert(first + byte);
      }
    }
  }
  return bytes;
}

TEST(NestsTest, FillsWithWordsAsWideAsTheyCanBe) {
  const auto width = [](const FillOperands& operands) {
    return TasksOf(operands).front().word_bytes;
  };
  EXPECT_EQ(width(OperandsOf({{64, {1}}}, 1)), 16);
  EXPECT_EQ(width(OperandsOf({{64, {1}}}, 1, 4)), 4);
  EXPECT_EQ(width(OperandsOf({{62, {1}}}, 1)), 2);
  EXPECT_EQ(width(OperandsOf({{64, {2}}}, 4)), 4);
  EXPECT_EQ(width(OperandsOf({{64, {1}}, {3, {66}}}, 4)), 8);
  EXPECT_EQ(width(OperandsOf({}, 8)), 8);
  EXPECT_EQ(width(OperandsOf({{3, {1}}}, 16)), 16);
}

TEST(NestsTest, NothingIsNoTask) {
  EXPECT_TRUE(TasksOf(OperandsOf({{0, {0}}}, 4)).empty());
}

TEST(NestsTest, PartsOfAnyLimitCoverEveryElementOnce) {
  const LoopModes<1> modes = {{6, {1}}, {5, {8}}, {3, {50}}};
  std::multiset<std::ptrdiff_t> all;
  for (int64_t k = 0; k < 3; ++k) {
    for (int64_t j = 0; j < 5; ++j) {
      for (int64_t i = 0; i < 12; ++i) all.insert(2 * (8 * j + 50 * k) + i);
    }
  }
  for (const int64_t limit : {1, 2, 3, 4, 7, 15, 16, 44, 45, 1000}) {
    const std::vector<FillTask> tasks = TasksOf(OperandsOf(modes, 2), limit);
    for (const FillTask& task : tasks) {
      EXPECT_LE(task.modes.count, limit);
      EXPECT_GT(task.modes.count, 0u);
    }
    EXPECT_EQ(BytesOf(tasks, 2), all) << limit;
  }
}

CopyOperands CopyOf(const LoopModes<2>& modes, int element_bytes,
                    std::ptrdiff_t from = 0) {
  CopyOperands operands;
  operands.modes = modes;
  operands.a = memory + from;
  operands.d = memory + 2048;
  operands.element_bytes = element_bytes;
  return operands;
}

TEST(NestsTest, CopiesWordsAsWideAsTheyCanBe) {
  const auto width = [](const CopyOperands& operands) {
    return TasksOf(operands).front().word_bytes;
  };
  EXPECT_EQ(width(CopyOf({{64, {1, 1}}}, 1)), 16);
  EXPECT_EQ(width(CopyOf({{64, {1, 1}}}, 1, 8)), 8);
  EXPECT_EQ(width(CopyOf({{64, {1, 1}}, {3, {-128, 64}}}, 2)), 16);
  EXPECT_EQ(width(CopyOf({{64, {1, 1}}, {3, {-66, 64}}}, 2)), 4);
  EXPECT_EQ(width(CopyOf({{64, {-1, 1}}}, 2)), 2);
  EXPECT_EQ(width(CopyOf({{64, {1, 2}}}, 2)), 2);
  EXPECT_EQ(width(CopyOf({}, 4)), 4);
}

TEST(NestsTest, PartsOfACopyMoveEveryElementOnce) {
  // From rows that go down to rows that go up.
  const LoopModes<2> modes = {{6, {1, 1}}, {5, {-8, 6}}, {3, {40, 30}}};
  const std::ptrdiff_t from = std::ptrdiff_t{2} * 4 * 8;
  for (const int64_t limit : {1, 2, 3, 4, 7, 15, 16, 44, 45, 1000}) {
    std::set<std::pair<std::ptrdiff_t, std::ptrdiff_t>> wanted, got;
    for (int64_t k = 0; k < 3; ++k) {
      for (int64_t j = 0; j < 5; ++j) {
        for (int64_t i = 0; i < 6; ++i) {
          wanted.emplace(from + 2 * (i - 8 * j + 40 * k),
                         2048 + 2 * (i + 6 * j + 30 * k));
        }
      }
    }
    int64_t count = 0;
    for (const CopyTask& task : TasksOf(CopyOf(modes, 2, from), limit)) {
      EXPECT_LE(task.modes.count, limit);
      for (uint32_t i = 0; i < task.modes.count; ++i) {
        const auto [a, d] = task.modes.At(i);
        for (int byte = 0; byte < task.word_bytes; byte += 2, ++count) {
          got.emplace(static_cast<const std::byte*>(task.a) - memory +
                          a * task.word_bytes + byte,
                      static_cast<std::byte*>(task.d) - memory +
                          d * task.word_bytes + byte);
        }
      }
    }
    EXPECT_EQ(got, wanted) << limit;
    EXPECT_EQ(count, 90) << limit;
  }
}

}  // namespace
}  // namespace tensord::core::cuda
