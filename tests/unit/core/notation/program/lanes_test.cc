#include "core/notation/program/lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace tensord::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Place = ProgramTensor::Place;

/// A program of vectors whose steps are known by their operands alone.
class Vectors {
 public:
  int32_t AddTemporary(int64_t begin_bytes, int64_t bytes) {
    ProgramTensor tensor;
    tensor.layout = PackedLayout({bytes / 4}, Order::kFirstModeFastest);
    tensor.arena_offset_bytes = begin_bytes;
    return Add(std::move(tensor));
  }
  int32_t AddOperand() {
    ProgramTensor tensor;
    tensor.place = Place::kOperand;
    tensor.number = static_cast<int32_t>(program_.tensors.size());
    tensor.layout = PackedLayout({4}, Order::kFirstModeFastest);
    return Add(std::move(tensor));
  }
  void AddStep(int32_t d, int32_t a, int32_t b = -1, bool needs_scratch = false,
               double cost = 1) {
    ProgramStep step;
    step.d.tensor = d;
    step.a.tensor = a;
    step.b.tensor = b;
    block_.steps.push_back(std::move(step));
    needs_scratch_.push_back(needs_scratch);
    costs_.push_back(cost);
  }
  /// Has the last step write `d`, too.
  void AddResult(int32_t d) {
    block_.steps.back().others.emplace_back().tensor = d;
  }
  std::vector<LaneStep> Assign(int32_t most_lanes) const {
    return AssignLanes(program_, block_, costs_, needs_scratch_, most_lanes);
  }

  const std::vector<ProgramStep>& steps() const { return block_.steps; }
  const ProgramTensor& tensor(int32_t t) const { return program_.tensors[t]; }
  bool needs_scratch(size_t step) const { return needs_scratch_[step]; }

 private:
  int32_t Add(ProgramTensor tensor) {
    program_.tensors.push_back(std::move(tensor));
    return static_cast<int32_t>(program_.tensors.size()) - 1;
  }

  Program program_;
  ProgramBlock block_;
  std::vector<bool> needs_scratch_;
  std::vector<double> costs_;
};

std::vector<int32_t> LanesOf(const std::vector<LaneStep>& steps) {
  std::vector<int32_t> lanes;
  for (const LaneStep& step : steps) lanes.push_back(step.lane);
  return lanes;
}

TEST(LanesTest, AChainStaysInOneLane) {
  Vectors vectors;
  const int32_t a = vectors.AddOperand();
  const int32_t t1 = vectors.AddTemporary(0, 64);
  const int32_t t2 = vectors.AddTemporary(64, 64);
  vectors.AddStep(t1, a);
  vectors.AddStep(t2, t1);
  vectors.AddStep(t1, t2);
  const std::vector<LaneStep> steps = vectors.Assign(4);
  EXPECT_THAT(LanesOf(steps), ElementsAre(0, 0, 0));
  for (const LaneStep& step : steps) EXPECT_THAT(step.after, IsEmpty());
}

TEST(LanesTest, WhatReadsAnyResultOfAStepWaitsForIt) {
  Vectors vectors;
  const int32_t a = vectors.AddOperand();
  const int32_t t1 = vectors.AddTemporary(0, 64);
  const int32_t t2 = vectors.AddTemporary(64, 64);
  const int32_t d1 = vectors.AddOperand(), d2 = vectors.AddOperand();
  vectors.AddStep(t1, a);
  vectors.AddResult(t2);
  vectors.AddStep(d1, t1);
  vectors.AddStep(d2, t2);
  const std::vector<LaneStep> steps = vectors.Assign(4);
  EXPECT_THAT(LanesOf(steps), ElementsAre(0, 0, 1));
  EXPECT_THAT(steps[2].after, ElementsAre(0));
}

TEST(LanesTest, BranchesGoBesideEachOtherAndMeet) {
  Vectors vectors;
  const int32_t a = vectors.AddOperand();
  const int32_t t1 = vectors.AddTemporary(0, 64);
  const int32_t t2 = vectors.AddTemporary(64, 64);
  const int32_t d = vectors.AddOperand();
  vectors.AddStep(t1, a);
  vectors.AddStep(t2, a);
  vectors.AddStep(t1, t1);
  vectors.AddStep(d, t1, t2);
  const std::vector<LaneStep> steps = vectors.Assign(4);
  EXPECT_EQ(steps[0].lane, steps[2].lane);
  EXPECT_NE(steps[0].lane, steps[1].lane);
  EXPECT_EQ(steps[3].after.size(), 1u);
  EXPECT_THAT(LanesOf(vectors.Assign(1)), ElementsAre(0, 0, 0, 0));
}

TEST(LanesTest, MemoryThatIsUsedAgainOrdersSteps) {
  Vectors vectors;
  const int32_t a = vectors.AddOperand();
  const int32_t d = vectors.AddOperand();
  const int32_t e = vectors.AddOperand();
  const int32_t t1 = vectors.AddTemporary(0, 64);
  const int32_t t2 = vectors.AddTemporary(32, 64);
  vectors.AddStep(t1, a);
  vectors.AddStep(d, t1);
  vectors.AddStep(t2, a, -1, true);
  vectors.AddStep(e, t2);
  const std::vector<LaneStep> steps = vectors.Assign(4);
  EXPECT_EQ(steps[2].lane, 0);
  EXPECT_TRUE(steps[1].lane == 0 || steps[2].after == std::vector<int32_t>{1});
}

TEST(LanesTest, WorkIsSpread) {
  Vectors vectors;
  const int32_t a = vectors.AddOperand();
  for (int i = 0; i < 5; ++i) {
    vectors.AddStep(vectors.AddTemporary(64 * i, 64), a, -1, false,
                    i == 0 ? 10 : 1);
  }
  // The fifth beside the cheaper of those before.
  EXPECT_THAT(LanesOf(vectors.Assign(2)), ElementsAre(0, 1, 1, 1, 1));
}

/// Of random steps on random memory, with `most_lanes` lanes.
class RandomVectors : public Vectors {
 public:
  explicit RandomVectors(std::mt19937& random) {
    const auto below = [&](int limit) {
      return static_cast<int>(random() % static_cast<unsigned>(limit));
    };
    const int tensor_count = 3 + below(10);
    for (int t = 0; t < tensor_count; ++t) {
      if (below(3) == 0) {
        AddOperand();
      } else {
        AddTemporary(32 * below(20), 32 * (1 + below(4)));
      }
    }
    for (int step = 1 + below(40); step > 0; --step) {
      AddStep(below(tensor_count), below(tensor_count),
              below(2) == 0 ? -1 : below(tensor_count), below(5) == 0,
              1 + below(10));
    }
  }

  /// Whether two steps use a common byte that one of them writes.
  bool AreOrdered(size_t x, size_t y) const {
    return !Common(Written(x), Written(y)).empty() ||
           !Common(Written(x), Read(y)).empty() ||
           !Common(Read(x), Written(y)).empty();
  }

 private:
  using Bytes = std::set<int64_t>;

  /// Bytes of the arena, or one far away from it for an operand.
  void Insert(Bytes& bytes, int32_t t) const {
    if (t < 0) return;
    const ProgramTensor& used = tensor(t);
    if (used.place == Place::kOperand) {
      bytes.insert(1'000'000 + t);
      return;
    }
    for (int64_t i = 0; i < used.layout.extents[0] * 4; ++i) {
      bytes.insert(used.arena_offset_bytes + i);
    }
  }
  Bytes Written(size_t step) const {
    Bytes bytes;
    Insert(bytes, steps()[step].d.tensor);
    return bytes;
  }
  Bytes Read(size_t step) const {
    Bytes bytes;
    Insert(bytes, steps()[step].a.tensor);
    Insert(bytes, steps()[step].b.tensor);
    return bytes;
  }
  static Bytes Common(const Bytes& x, const Bytes& y) {
    Bytes common;
    std::ranges::set_intersection(x, y, std::inserter(common, common.end()));
    return common;
  }
};

/// (later)(earlier): whether the end of the earlier one comes before the later
/// one begins, by lanes and by `after`, without the edge from `left_out_from`
/// to `left_out_to`.
std::vector<std::vector<bool>> OrderOf(const std::vector<LaneStep>& steps,
                                       int32_t left_out_from = -1,
                                       size_t left_out_to = 0) {
  std::vector<std::vector<bool>> is_before(
      steps.size(), std::vector<bool>(steps.size(), false));
  for (size_t step = 0; step < steps.size(); ++step) {
    const auto follow = [&](size_t before) {
      is_before[step][before] = true;
      for (size_t i = 0; i < before; ++i) {
        if (is_before[before][i]) is_before[step][i] = true;
      }
    };
    for (size_t before = 0; before < step; ++before) {
      if (steps[before].lane == steps[step].lane) follow(before);
    }
    for (const int32_t before : steps[step].after) {
      if (before == left_out_from && step == left_out_to) continue;
      follow(static_cast<size_t>(before));
    }
  }
  return is_before;
}

TEST(LanesTest, StepsThatShareMemoryAreInOrder) {
  std::mt19937 random(17);
  int wait_count = 0;
  int lane_count = 0;
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    const RandomVectors vectors(random);
    const int most_lanes = 1 + round % 5;
    const std::vector<LaneStep> steps = vectors.Assign(most_lanes);
    ASSERT_EQ(steps.size(), vectors.steps().size());
    const auto is_before = OrderOf(steps);
    std::set<int32_t> awaited;
    for (size_t step = 0; step < steps.size(); ++step) {
      EXPECT_LT(steps[step].lane, most_lanes);
      lane_count = std::max(lane_count, steps[step].lane + 1);
      if (vectors.needs_scratch(step)) {
        EXPECT_EQ(steps[step].lane, 0);
      }
      for (size_t before = 0; before < step; ++before) {
        if (vectors.AreOrdered(before, step)) {
          EXPECT_TRUE(is_before[step][before]) << before << " " << step;
        }
      }
      for (const int32_t before : steps[step].after) {
        ++wait_count;
        awaited.insert(before);
        EXPECT_NE(steps[before].lane, steps[step].lane);
        EXPECT_NE(OrderOf(steps, before, step), is_before)
            << "the wait of " << step << " for " << before
            << " follows from others";
      }
    }
    for (size_t step = 0; step < steps.size(); ++step) {
      EXPECT_EQ(steps[step].is_awaited,
                awaited.contains(static_cast<int32_t>(step)));
    }
  }
  EXPECT_GT(wait_count, 200);
  EXPECT_EQ(lane_count, 5);
}

}  // namespace
}  // namespace tensord::core
