// Which permutation kernel is chosen on an H200, by the cycle model alone.
#include <gtest/gtest.h>
#include <time.h>

#include <vector>

#include "core/backend/cuda/cuda_backend.h"
#include "core/plan/planner.h"
#include "tests/simt/fake_runtime.h"
#include "tests/testing/element_types.h"

namespace tensord::core {
namespace {

class PermutationChoiceTest : public ::testing::Test {
 protected:
  PermutationChoiceTest() {
    simt::ResetNode(
        {.memory_bytes = int64_t{1} << 30, .multiprocessor_count = 132});
    backend_ = CreateCudaBackend(0).value();
  }

  /// A packed tensor of `extents`, permuted so that d's i-th mode is a's
  /// order[i]-th.
  static PermutationProblem Problem(ElementType type,
                                    std::vector<int64_t> extents,
                                    std::vector<size_t> order) {
    std::vector<int64_t> strides_a(extents.size());
    int64_t stride = 1;
    for (size_t i = 0; i < extents.size(); ++i) {
      strides_a[i] = stride;
      stride *= extents[i];
    }
    PermutationProblem problem{
        .type_a = type,
        .type_d = type,
        .is_move = true,
        .alignment_bytes = PermutationProblem::kWidestAccess};
    stride = 1;
    for (const size_t i : order) {
      problem.modes.push_back({extents[i], {strides_a[i], stride}});
      stride *= extents[i];
    }
    problem.modes = Canonical(problem.modes, PermutationProblem::kD);
    return problem;
  }

  std::string Choice(const PermutationProblem& problem) {
    const auto plan = MakePlan(*backend_, {.problem = problem, .device = ""});
    return plan.ok() ? std::string(plan->kernel_name())
                     : plan.status().ToString();
  }

  std::unique_ptr<Backend> backend_;
};

using tensord::test::kF32;

// B2.1
TEST_F(PermutationChoiceTest, IdentityIsACopy) {
  EXPECT_EQ(Choice(Problem(kF32, {100, 200}, {0, 1})), "cuda.permute.trivial");
}

// Planned as something else than a move of bits, it is not called one.
TEST_F(PermutationChoiceTest, IdentityWithAnUnknownFactorIsNoCopy) {
  PermutationProblem problem = Problem(kF32, {100, 200}, {0, 1});
  problem.is_move = false;
  EXPECT_NE(Choice(problem), "cuda.permute.trivial");
}

TEST_F(PermutationChoiceTest, WordsAreAsWideAsAlignmentAllows) {
  PermutationProblem problem =
      Problem(ElementType::kFloat16, {64, 256, 256}, {0, 2, 1});
  double least = 0;
  for (const int64_t alignment : {16, 8, 4, 2}) {
    problem.alignment_bytes = alignment;
    const auto plan = MakePlan(*backend_, {.problem = problem, .device = ""});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_GE(plan->predicted_nanoseconds(), least) << alignment;
    least = plan->predicted_nanoseconds();
  }
}

// B2.2
TEST_F(PermutationChoiceTest, LongModesAreTiled) {
  EXPECT_EQ(Choice(Problem(kF32, {4096, 4096}, {1, 0})), "cuda.permute.tiled");
  EXPECT_EQ(Choice(Problem(ElementType::kFloat16, {512, 256, 512}, {2, 1, 0})),
            "cuda.permute.tiled");
}

// B2.2
TEST_F(PermutationChoiceTest, TilesTakeWhateverHasAnotherFastestMode) {
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  while (std::next_permutation(order.begin(), order.end())) {
    const auto tiled = FindCandidate(
        *backend_,
        {.problem = Problem(kF32, {3, 40, 2, 5, 33}, order), .device = ""},
        "cuda.permute.tiled");
    EXPECT_EQ(tiled->refusal.ok(), order[0] != 0) << tiled->refusal;
  }
}

// B2.3
TEST_F(PermutationChoiceTest, LongRowsThatStayAreCopied) {
  EXPECT_EQ(Choice(Problem(kF32, {512, 256, 256}, {0, 2, 1})),
            "cuda.permute.tiled_copy");
}

// Words of one or two bytes, of which a thread would move few at a time.
TEST_F(PermutationChoiceTest, RowsOfNarrowWordsGoByGroups) {
  for (const auto type : {ElementType::kInt8, ElementType::kFloat16}) {
    EXPECT_EQ(Choice(Problem(type, {1023, 256, 256}, {0, 2, 1})),
              "cuda.permute.runs");
    PermutationProblem scaled = Problem(type, {1024, 256, 256}, {0, 2, 1});
    scaled.is_move = false;
    EXPECT_EQ(Choice(scaled), type == ElementType::kInt8
                                  ? "cuda.permute.tiled_copy"
                                  : "cuda.permute.runs");
  }
}

TEST_F(PermutationChoiceTest, ShortRowsDoNot) {
  EXPECT_EQ(Choice(Problem(ElementType::kInt8, {33, 256, 256}, {0, 2, 1})),
            "cuda.permute.tiled_copy");
}

// B2.4
TEST_F(PermutationChoiceTest, ShortModesArePacked) {
  for (const std::vector<size_t>& order :
       {std::vector<size_t>{7, 6, 5, 4, 3, 2, 1, 0},
        std::vector<size_t>{2, 3, 0, 1, 6, 7, 4, 5}}) {
    const std::string choice =
        Choice(Problem(kF32, {5, 3, 2, 4, 35, 33, 37, 40}, order));
    EXPECT_TRUE(choice == "cuda.permute.packed" ||
                choice == "cuda.permute.packed_split")
        << choice;
  }
}

// B2.6
TEST_F(PermutationChoiceTest, PackedTilesOfOneVolumeCostTheSameAtAnyRank) {
  const auto predicted = [&](const PermutationProblem& problem) {
    const auto plan = MakePlan(
        *backend_,
        {.problem = problem, .device = "", .kernel = "cuda.permute.packed"});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan->predicted_nanoseconds();
  };
  const PermutationProblem rank4 =
      Problem(kF32, std::vector<int64_t>(4, 64), {3, 2, 1, 0});
  const PermutationProblem rank12 =
      Problem(kF32, std::vector<int64_t>(12, 4),
              {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  ASSERT_EQ(rank12.modes.size(), 12u);
  EXPECT_NEAR(predicted(rank12) / predicted(rank4), 1, 0.01);
}

// B3.8: what counts all tilings or orders of twelve modes takes minutes.
TEST_F(PermutationChoiceTest, PlansAtHighRankWithoutASearch) {
  const PermutationProblem problem =
      Problem(kF32, {2, 3, 4, 3, 2, 2, 3, 2, 20, 18, 22, 24},
              {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  const auto processor_seconds = [] {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) +
           1e-9 * static_cast<double>(now.tv_nsec);
  };
  const double begun = processor_seconds();
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(MakePlan(*backend_, {.problem = problem, .device = ""}).ok());
  }
  // time: of the processor's; a millisecond each on an idle machine, with ASan
  EXPECT_LT(processor_seconds() - begun, 10);
}

TEST_F(PermutationChoiceTest, PredictionsAreTheSameEveryTime) {
  const PermutationProblem problem =
      Problem(kF32, {31, 17, 40, 53}, {3, 0, 2, 1});
  for (const auto& kernel : backend_->kernels().permutation) {
    const auto once = kernel->Solve(problem), again = kernel->Solve(problem);
    ASSERT_EQ(once.status(), again.status()) << kernel->name();
    if (!once.ok()) continue;
    EXPECT_EQ((*once)->predicted_nanoseconds(),
              (*again)->predicted_nanoseconds())
        << kernel->name();
  }
}

}  // namespace
}  // namespace tensord::core
