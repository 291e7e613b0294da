// Which element-wise kernel is chosen on an H200.
#include <gtest/gtest.h>

#include "core/backend/cuda/cuda_backend.h"
#include "core/ops/type_tables.h"
#include "core/plan/planner.h"
#include "tests/simt/fake_runtime.h"

namespace tensord::core {
namespace {

class ElementwiseChoiceTest : public ::testing::Test {
 protected:
  ElementwiseChoiceTest() {
    simt::ResetNode(
        {.memory_bytes = int64_t{1} << 30, .multiprocessor_count = 132});
    backend_ = CreateCudaBackend(0).value();
  }

  /// The sum of three packed float32 matrices, where b has other strides.
  static ElementwiseProblem Sum(std::array<int64_t, 2> strides_b) {
    constexpr int64_t kSide = 4096;
    ElementwiseProblem problem{.has_b = true};
    problem.types.fill(ElementType::kFloat32);
    problem.modes =
        Canonical(LoopModes<4>{{kSide, {1, strides_b[0], 1, 1}},
                               {kSide, {kSide, strides_b[1], kSide, kSide}}},
                  ElementwiseProblem::kD);
    return problem;
  }

  std::string Choice(const ElementwiseProblem& problem) {
    const auto plan = MakePlan(*backend_, {.problem = problem, .device = ""});
    return plan.ok() ? std::string(plan->kernel_name())
                     : plan.status().ToString();
  }

  double Prediction(const ElementwiseProblem& problem) {
    return MakePlan(*backend_, {.problem = problem, .device = ""})
        .value()
        .predicted_nanoseconds();
  }

  std::unique_ptr<Backend> backend_;
};

TEST_F(ElementwiseChoiceTest, EqualOrdersAreFused) {
  EXPECT_EQ(Choice(Sum({1, 4096})), "cuda.elementwise.fused");
}

TEST_F(ElementwiseChoiceTest, OtherOrdersAreTurned) {
  EXPECT_EQ(Choice(Sum({4096, 1})), "cuda.elementwise.tiled");
}

TEST_F(ElementwiseChoiceTest, WhatIsBroadcastIsNotTurned) {
  EXPECT_EQ(Choice(Sum({1, 0})), "cuda.elementwise.fused");
  EXPECT_EQ(Choice(Sum({0, 1})), "cuda.elementwise.fused");
}

// Images of three colours by pixel, added to images by colour: in d's order, b
// would be read a sector an element.
TEST_F(ElementwiseChoiceTest, ShortFastestModesAreTurned) {
  constexpr int64_t kSide = 2000;
  for (const int64_t colours : {2, 3, 4, 5, 6}) {
    ElementwiseProblem problem{.has_b = true};
    problem.types.fill(ElementType::kFloat32);
    problem.modes =
        Canonical(LoopModes<4>{{colours, {1, kSide * kSide, 1, 1}},
                               {kSide * kSide, {colours, 1, colours, colours}}},
                  ElementwiseProblem::kD);
    EXPECT_EQ(Choice(problem), "cuda.elementwise.tiled") << colours;
    // At most a quarter over a copy of as many bytes.
    ElementwiseProblem straight = problem;
    for (auto& mode : straight.modes) mode.strides[1] = mode.strides[3];
    straight.modes = Canonical(straight.modes, ElementwiseProblem::kD);
    EXPECT_LT(Prediction(problem), 1.25 * Prediction(straight)) << colours;
  }
}

// The fastest mode is the same, but runs are short: tiles of several modes make
// them long in both orders.
TEST_F(ElementwiseChoiceTest, ShortRunsAreTurned) {
  ElementwiseProblem problem{.has_b = true};
  problem.types.fill(ElementType::kFloat32);
  problem.modes = Canonical(LoopModes<4>{{3, {1, 1, 1, 1}},
                                         {1000, {3, 3000, 3, 3}},
                                         {1000, {3000, 3, 3000, 3000}}},
                            ElementwiseProblem::kD);
  EXPECT_EQ(Choice(problem), "cuda.elementwise.tiled");
}

// Two inputs in orders of their own, whatever the type.
TEST_F(ElementwiseChoiceTest, SeveralInputsAreTurned) {
  constexpr int64_t kSide = 128;
  for (const auto type : {ElementType::kInt8, ElementType::kFloat16,
                          ElementType::kFloat32, ElementType::kComplex128}) {
    ElementwiseProblem problem{.has_b = true};
    problem.types.fill(type);
    problem.compute_type = DefaultComputeType(type);
    constexpr int64_t kArea = kSide * kSide;
    problem.modes = Canonical(LoopModes<4>{{kSide, {kSide, kSide, 1, 1}},
                                           {kSide, {1, kArea, kSide, kSide}},
                                           {kSide, {kArea, 1, kArea, kArea}}},
                              ElementwiseProblem::kD);
    EXPECT_EQ(Choice(problem), "cuda.elementwise.tiled")
        << static_cast<int>(type);
  }
}

// A long run of d would take one element of b; a run of two does not.
TEST_F(ElementwiseChoiceTest, WhatIsBroadcastAlongAShortModeIsTurned) {
  ElementwiseProblem problem{.has_b = true};
  problem.types.fill(ElementType::kFloat32);
  problem.modes = Canonical(LoopModes<4>{{2, {1, 0, 1, 1}},
                                         {1000, {2, 1000, 2, 2}},
                                         {1000, {2000, 1, 2000, 2000}}},
                            ElementwiseProblem::kD);
  EXPECT_EQ(Choice(problem), "cuda.elementwise.tiled");
}

}  // namespace
}  // namespace tensord::core
