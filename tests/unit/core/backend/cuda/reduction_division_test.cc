// How reductions are dealt out on an H200, by the shape of the problem alone.
#include "core/backend/cuda/reduction_division.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/backend/cuda/kernel/reduction_tasks.h"
#include "tests/testing/element_types.h"
#include "tests/unit/core/backend/cuda/h200.h"

namespace tensord::core::cuda {
namespace {

using Way = ReductionWay;

// Bytes that must be under way to keep 4.8 TB/s busy for 700 ns.
constexpr double kBytesUnderWay = 4800 * 700;
// Blocks of 256 threads that fit on a multiprocessor at 64 registers a thread.
constexpr int64_t kResidentBlocks = 4;

/// Of a packed operand of two modes, the first of which is contiguous.
ReductionProblem Problem(ElementType type, int64_t run, int64_t count,
                         bool is_rows) {
  ReductionProblem problem{.type_a = type, .type_d = type};
  const LoopMode<1> reduced{is_rows ? run : count, {is_rows ? 1 : run}};
  const LoopMode<3> kept{is_rows ? count : run, {is_rows ? run : 1, 1, 1}};
  problem.reduced = Canonical(LoopModes<1>{reduced}, 0);
  problem.kept = Canonical(LoopModes<3>{kept}, 2);
  return problem;
}

struct Shape {
  ElementType type;
  int64_t run, count;
  bool is_rows;
};
using tensord::test::kF16;
using tensord::test::kF32;

/// Large problems of every kind.
const Shape kLarge[] = {{kF32, 1 << 28, 1, true},
                        {kF16, 1 << 28, 1, true},
                        {kF32, 1000, 1 << 18, true},
                        {kF32, 1 << 24, 16, true},
                        {kF32, 3, 10'000'000, true},
                        {kF32, 10'000'000, 5, true},
                        {kF32, 10'000'000, 3, false},
                        {kF32, 5, 10'000'000, false},
                        {kF32, 4096, 1 << 16, false},
                        {kF16, 33, 1'000'000, false},
                        {kF32, 33, 1'000'000, false},
                        {ElementType::kFloat64, 100, 1 << 20, true},
                        {ElementType::kInt8, 1 << 20, 256, true}};

TEST(ReductionDivisionTest, ContiguousModesGoByGroups) {
  EXPECT_EQ(Divide(kH200, Problem(kF32, 100, 1000, true)).way, Way::kShortRows);
  EXPECT_EQ(Divide(kH200, Problem(kF32, 5000, 1000, true)).way, Way::kLongRows);
  EXPECT_EQ(Divide(kH200, Problem(kF32, 5000, 1000, false)).way, Way::kColumns);
}

TEST(ReductionDivisionTest, StridesAndOperatorsGoByElements) {
  ReductionProblem problem = Problem(kF32, 5000, 1000, true);
  problem.unary_a = UnaryOperator::kSqrt;
  EXPECT_EQ(Divide(kH200, problem).way, Way::kTree);
  problem = Problem(kF32, 5000, 1000, true);
  problem.unary_c = UnaryOperator::kNeg;
  EXPECT_EQ(Divide(kH200, problem).way, Way::kTree);
  problem = Problem(kF32, 5000, 1000, true);
  problem.reduced[0].strides[0] = 2;
  EXPECT_EQ(Divide(kH200, problem).way, Way::kTree);
}

TEST(ReductionDivisionTest, EveryThreadCountIsThatOfABlock) {
  for (const Shape& s : kLarge) {
    const ReductionDivision division =
        Divide(kH200, Problem(s.type, s.run, s.count, s.is_rows));
    EXPECT_EQ(division.kept_threads * division.reduced_threads, 256)
        << s.run << " x " << s.count;
  }
}

TEST(ReductionDivisionTest, NoPartIsEmptyOrTooLongForItsLeaves) {
  for (const Shape& s : kLarge) {
    SCOPED_TRACE(::testing::Message() << s.run << " x " << s.count);
    const ReductionDivision division =
        Divide(kH200, Problem(s.type, s.run, s.count, s.is_rows));
    EXPECT_GT(division.part, 0);
    EXPECT_LT((division.split_count - 1) * division.part,
              division.reduced_items);
    EXPECT_GE(division.split_count * division.part, division.reduced_items);
    EXPECT_LE(division.part, division.reduced_threads *
                                 ReductionGroupsTask::kMostBatches *
                                 ReductionGroupsTask::AtOnce(SizeOf(s.type)));
  }
}

// Little's law: what is under way on the whole GPU, idle lanes left out.
TEST(ReductionDivisionTest, LargeProblemsKeepTheMemoryBusy) {
  for (const Shape& s : kLarge) {
    SCOPED_TRACE(::testing::Message() << s.run << " x " << s.count);
    const ReductionDivision division =
        Divide(kH200, Problem(s.type, s.run, s.count, s.is_rows));
    const int64_t blocks = std::min(
        division.block_count(), kResidentBlocks * kH200.multiprocessor_count);
    const int64_t thread_items =
        division.tiles() * division.kept_threads * division.kept_per_thread *
        division.reduced_threads * division.split_count;
    const int64_t at_once =
        division.way == Way::kShortRows
            ? 1
            : std::min<int64_t>(ReductionGroupsTask::AtOnce(SizeOf(s.type)),
                                (division.part + division.reduced_threads - 1) /
                                    division.reduced_threads);
    const double bytes = static_cast<double>(s.run * s.count * SizeOf(s.type));
    const double each = std::min(bytes / static_cast<double>(thread_items),
                                 static_cast<double>(at_once * 16)) *
                        static_cast<double>(division.kept_per_thread);
    EXPECT_GE(static_cast<double>(blocks * 256) * each, kBytesUnderWay);
  }
}

TEST(ReductionDivisionTest, PredictsTheTimeOfReadingOnce) {
  for (const Shape& s : kLarge) {
    SCOPED_TRACE(::testing::Message() << s.run << " x " << s.count);
    const ReductionProblem problem = Problem(s.type, s.run, s.count, s.is_rows);
    const double bytes = static_cast<double>(s.run * s.count * SizeOf(s.type));
    const double read_ns = bytes / kH200.copy_bytes_per_ns();
    const double ns = PredictReduction(kH200, problem, Divide(kH200, problem));
    EXPECT_GE(ns, read_ns);
    // What is written, launches, and elements read one by one add to it.
    EXPECT_LE(ns, 2.2 * read_ns + 2 * kH200.launch_ns);
  }
}

}  // namespace
}  // namespace tensord::core::cuda
