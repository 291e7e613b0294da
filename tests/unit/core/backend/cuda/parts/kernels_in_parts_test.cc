// What kernels in parts say and do, told by kernels that take notes.
#include "core/backend/cuda/parts/kernels_in_parts.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/backend/cuda/cuda_backend.h"
#include "core/base/status.h"
#include "core/device/host_stream.h"
#include "core/device/interruption.h"
#include "core/plan/planner.h"
#include "tests/simt/fake_runtime.h"
#include "tests/testing/element_types.h"

namespace tensord::core::cuda {
namespace {

using tensord::test::kF32;

int64_t ElementCount(const ElementwiseProblem& p) {
  return ElementCount(p.modes);
}
int64_t ElementCount(const ReductionProblem& p) {
  return ElementCount(p.kept) * ElementCount(p.reduced);
}
int64_t ElementCount(const ContractionProblem& p) {
  return ElementCount(p.m) * ElementCount(p.n) * ElementCount(p.k);
}

/// Takes a nanosecond and a byte of workspace an element, and notes what it is
/// to launch. Refuses problems of `refused` elements.
template <typename Problem, typename Operands>
class Noting final : public Kernel<Problem, Operands> {
 public:
  struct Note {
    Problem problem;
    Operands operands;
    const std::byte* workspace;
  };

  Noting(std::vector<Note>& notes, int64_t refused)
      : notes_(notes), refused_(refused) {}

  absl::string_view name() const override { return "noting"; }
  int version() const override { return 7; }
  Kernel<Problem, Operands>::Solved Solve(
      const Problem& problem) const override {
    if (ElementCount(problem) == refused_) {
      return Unimplemented("REFUSED", "that many elements it does not like");
    }
    return std::make_unique<NotingSolution>(notes_, problem);
  }

 private:
  class NotingSolution final : public Solution<Operands> {
   public:
    NotingSolution(std::vector<Note>& notes, const Problem& problem)
        : Solution<Operands>(static_cast<double>(ElementCount(problem)),
                             Workspace::BytesFor(ElementCount(problem))),
          notes_(notes),
          problem_(problem) {}

    std::string decision() const override { return "to note"; }
    int64_t bytes() const override { return HeapBlockBytes(sizeof(*this)); }
    absl::Status Launch(const Operands& operands, Workspace& workspace,
                        Stream&) const override {
      notes_.push_back({problem_, operands,
                        workspace.Take<std::byte>(ElementCount(problem_))});
      return absl::OkStatus();
    }

   private:
    std::vector<Note>& notes_;
    const Problem problem_;
  };

  std::vector<Note>& notes_;
  const int64_t refused_;
};

using NotingElementwise = Noting<ElementwiseProblem, ElementwiseOperands>;
using NotingReduction = Noting<ReductionProblem, ReductionOperands>;
using NotingContraction = Noting<ContractionProblem, ContractionOperands>;

class KernelsInPartsTest : public ::testing::Test {
 protected:
  /// Lists of a noting kernel each, and of another that is the last.
  void Create(int64_t limit, int64_t refused = -1) {
    Create({.elements = limit}, refused);
  }
  void Create(const PartLimits& limits, int64_t refused = -1) {
    KernelLists lists;
    for (int i = 0; i < 2; ++i) {
      lists.elementwise.push_back(
          std::make_unique<NotingElementwise>(elementwise_, refused));
      lists.reduction.push_back(
          std::make_unique<NotingReduction>(reduction_, refused));
      lists.contraction.push_back(
          std::make_unique<NotingContraction>(contraction_, refused));
    }
    lists_ = InParts(std::move(lists), limits);
  }

  /// Launches the first kernel of `list` with all the workspace that it wants.
  template <typename Problem, typename Operands>
  void Launch(const KernelList<Kernel<Problem, Operands>>& list,
              const Problem& problem, const Operands& operands) {
    const auto solution = list.front()->Solve(problem);
    ASSERT_TRUE(solution.ok()) << solution.status();
    scratch_.resize(static_cast<size_t>((*solution)->workspace_bytes()));
    Workspace workspace(scratch_);
    HostStream stream;
    ASSERT_EQ((*solution)->Launch(operands, workspace, stream),
              absl::OkStatus());
  }

  std::vector<NotingElementwise::Note> elementwise_;
  std::vector<NotingReduction::Note> reduction_;
  std::vector<NotingContraction::Note> contraction_;
  std::vector<std::byte> scratch_;
  KernelLists lists_;
};

/// d (1000, 7) = a + c, where a is broadcast along the slow mode.
ElementwiseProblem Sum() {
  ElementwiseProblem problem;
  problem.types = {kF32, kF32, kF32, kF32};
  problem.modes = {{1000, {1, 0, 1, 1}}, {7, {0, 0, 1000, 1000}}};
  return problem;
}

TEST_F(KernelsInPartsTest, ProblemsWithinTheLimitArePassedOn) {
  Create(7000);
  float a = 0, c = 0, d = 0;
  Launch(lists_.elementwise, Sum(), {.a = &a, .c = &c, .d = &d});
  ASSERT_EQ(elementwise_.size(), 1u);
  EXPECT_EQ(elementwise_[0].problem, Sum());
  EXPECT_EQ(elementwise_[0].operands.d, &d);
}

TEST_F(KernelsInPartsTest, LargerOnesAreTakenPartByPart) {
  Create(3000);
  const std::vector<float> memory(7000);
  float* const d = const_cast<float*>(memory.data());
  Launch(lists_.elementwise, Sum(), {.a = d, .c = nullptr, .d = d});
  ASSERT_EQ(elementwise_.size(), 3u);
  for (size_t number = 0; number < 3; ++number) {
    const auto& note = elementwise_[number];
    EXPECT_EQ(ElementCount(note.problem), number < 2 ? 3000 : 1000);
    EXPECT_EQ(note.operands.a, d) << "broadcast";
    EXPECT_EQ(note.operands.c, nullptr);
    EXPECT_EQ(note.operands.d, d + 3000 * number);
    EXPECT_EQ(note.workspace, scratch_.data()) << "each has all of it";
  }
}

TEST_F(KernelsInPartsTest, CostsAreThoseOfAllPartsAndOfTheLargest) {
  Create(3000);
  const auto& kernel = *lists_.elementwise.front();
  EXPECT_EQ(kernel.name(), "noting");
  EXPECT_EQ(kernel.version(), 7);
  const auto solution = kernel.Solve(Sum()).value();
  EXPECT_EQ(solution->predicted_nanoseconds(), 7000);
  EXPECT_EQ(solution->workspace_bytes(), Workspace::BytesFor(3000));
  EXPECT_EQ(solution->decision(), "in 3 parts, each: to note");
}

TEST_F(KernelsInPartsTest, TheRefusalOfAPartIsTheRefusal) {
  Create(3000, 1000);
  const absl::Status refusal =
      lists_.elementwise.front()->Solve(Sum()).status();
  EXPECT_EQ(ReasonOf(refusal), "REFUSED");
  Create(3000, 3000);
  EXPECT_FALSE(lists_.elementwise.front()->Solve(Sum()).ok());
}

TEST_F(KernelsInPartsTest, TheLastKernelOfAListTakesTheWhole) {
  Create(3000, 7000);
  EXPECT_TRUE(lists_.elementwise.front()->Solve(Sum()).ok());
  EXPECT_FALSE(lists_.elementwise.back()->Solve(Sum()).ok());
}

TEST_F(KernelsInPartsTest, SomeThousandsOfPartsAreTooMany) {
  Create(1);
  const absl::Status refusal =
      lists_.elementwise.front()->Solve(Sum()).status();
  EXPECT_EQ(refusal.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ReasonOf(refusal), "TOO_MANY_PARTS");
}

/// d (3) = the sums of rows of 10 000 float16.
ReductionProblem RowSums() {
  return {.type_a = ElementType::kFloat16,
          .type_d = ElementType::kFloat16,
          .kept = {{3, {10'000, 1, 1}}},
          .reduced = {{10'000, {1}}}};
}

TEST_F(KernelsInPartsTest, LongSumsAreMadeOfPartialOnes) {
  Create(4000);
  const std::vector<Half> a(30'000), c(3);
  std::array<Half, 3> d;
  Launch(lists_.reduction, RowSums(),
         {.a = a.data(),
          .c = c.data(),
          .d = d.data(),
          .alpha = {2, 0},
          .beta = {3, 0}});
  ASSERT_EQ(reduction_.size(), 4u);
  const auto* const partial = reinterpret_cast<float*>(scratch_.data());
  for (size_t number = 0; number < 3; ++number) {
    const auto& note = reduction_[number];
    EXPECT_EQ(note.operands.a,
              static_cast<const void*>(a.data() + 3456 * number));
    EXPECT_EQ(note.operands.c, nullptr);
    EXPECT_EQ(note.operands.d, partial + 16 * number) << "aligned";
    EXPECT_EQ(note.operands.alpha, kOne);
    EXPECT_EQ(note.operands.beta, kZero);
    EXPECT_EQ(note.workspace, scratch_.data() + kBufferAlignment);
  }
  const auto& join = reduction_[3];
  EXPECT_EQ(join.operands.a, partial);
  EXPECT_EQ(join.operands.c, c.data());
  EXPECT_EQ(join.operands.d, d.data());
  EXPECT_EQ(join.operands.alpha, (Scalar{2, 0}));
  EXPECT_EQ(join.operands.beta, (Scalar{3, 0}));
  EXPECT_EQ(join.problem.reduced, (LoopModes<1>{{3, {16}}}));
  const auto solution = lists_.reduction.front()->Solve(RowSums()).value();
  EXPECT_EQ(solution->predicted_nanoseconds(), 3 * 10'000 + 3 * 3);
  EXPECT_EQ(solution->workspace_bytes(),
            Workspace::BytesFor(3 * 16 * sizeof(float)) +
                Workspace::BytesFor(3 * 3456));
}

TEST_F(KernelsInPartsTest, WithoutAlphaNoTermIsTaken) {
  Create(4000);
  const std::array<Half, 3> c = {};
  std::array<Half, 3> d;
  Launch(lists_.reduction, RowSums(),
         {.c = c.data(), .d = d.data(), .alpha = kZero, .beta = kOne});
  ASSERT_EQ(reduction_.size(), 1u);
  EXPECT_EQ(reduction_[0].operands.alpha, kZero);
  EXPECT_EQ(reduction_[0].operands.beta, kOne);
  EXPECT_EQ(reduction_[0].operands.d, d.data());
}

/// d (m) = a (m, k) b (k).
ContractionProblem Product(ElementType type, int64_t m, int64_t k) {
  ContractionProblem problem{.type_a = type, .type_b = type, .type_d = type};
  problem.m = {{m, {1, 1, 1}}};
  problem.k = {{k, {m, 1}}};
  return problem;
}

TEST_F(KernelsInPartsTest, LongContractionsAreJoinedByAReduction) {
  Create(1000);
  const std::vector<float> a(5 * 2000), b(2000);
  std::array<float, 5> d;
  Launch(lists_.contraction, Product(kF32, 5, 2000),
         {.a = a.data(), .b = b.data(), .d = d.data(), .alpha = {2, 0}});
  ASSERT_EQ(contraction_.size(), 2u);
  EXPECT_EQ(contraction_[1].operands.a, a.data() + 5 * 1000);
  EXPECT_EQ(contraction_[1].operands.b, b.data() + 1000);
  EXPECT_EQ(contraction_[1].operands.alpha, kOne);
  ASSERT_EQ(reduction_.size(), 1u);
  EXPECT_EQ(reduction_[0].operands.d, d.data());
  EXPECT_EQ(reduction_[0].operands.alpha, (Scalar{2, 0}));
}

TEST_F(KernelsInPartsTest, PartialSumsAreNotRoundedToSixteenBits) {
  Create(1000);
  for (const ElementType type :
       {ElementType::kFloat16, ElementType::kBfloat16}) {
    const auto& kernel = *lists_.contraction.front();
    EXPECT_TRUE(kernel.Solve(Product(type, 5, 1000)).ok());
    EXPECT_EQ(ReasonOf(kernel.Solve(Product(type, 5, 1001)).status()),
              "TOO_MANY_TERMS");
  }
  EXPECT_TRUE(lists_.contraction.front()
                  ->Solve(Product(ElementType::kInt8, 5, 1001))
                  .ok());
}

TEST_F(KernelsInPartsTest, BothElementsAndTermsMayBeTooMany) {
  Create(1000);
  Launch(lists_.contraction, Product(kF32, 2000, 2000), {});
  EXPECT_EQ(contraction_.size(), 4u);
  ASSERT_EQ(reduction_.size(), 2u);
  for (const auto& note : contraction_) {
    EXPECT_EQ(ElementCount(note.problem.m), 1000);
    EXPECT_EQ(ElementCount(note.problem.k), 1000);
  }
}

TEST_F(KernelsInPartsTest, WhatTakesLongIsDividedByAnyKernel) {
  Create({.nanoseconds = 4000});
  for (const auto* kernel :
       {lists_.elementwise.front().get(), lists_.elementwise.back().get()}) {
    const auto solution = kernel->Solve(Sum()).value();
    EXPECT_EQ(solution->predicted_nanoseconds(), 7000);
    EXPECT_EQ(solution->decision(), "in 7 parts, each: to note");
  }
  Create({.nanoseconds = 7000});
  EXPECT_EQ(lists_.elementwise.front()->Solve(Sum()).value()->decision(),
            "to note");
}

TEST_F(KernelsInPartsTest, LongSumsOfFewElementsAreDividedByTheirTerms) {
  Create({.nanoseconds = 20'000});
  const auto solution =
      lists_.contraction.front()->Solve(Product(kF32, 1, 30'000)).value();
  EXPECT_EQ(solution->decision(), "sums in 6 parts, each: to note");
  // The last one needs no more workspace.
  EXPECT_EQ(lists_.contraction.back()
                ->Solve(Product(kF32, 1, 30'000))
                .value()
                ->decision(),
            "to note");
  // Which would lose bits here.
  const auto whole = lists_.contraction.front()
                         ->Solve(Product(ElementType::kFloat16, 1, 30'000))
                         .value();
  EXPECT_EQ(whole->decision(), "to note");
}

TEST_F(KernelsInPartsTest, WhatADivisionWouldMakeMuchLongerIsLeftWhole) {
  Create({.nanoseconds = 4000}, 1000);  // a part of which is refused
  EXPECT_EQ(lists_.elementwise.front()->Solve(Sum()).value()->decision(),
            "to note");
}

/// A device that works on its own.
class AheadStream final : public HostStream {
 public:
  absl::StatusOr<std::unique_ptr<Event>> Record() override {
    return std::make_unique<Reached>();
  }

 private:
  class Reached final : public Event {
   public:
    bool IsReached() override { return true; }
    absl::Status Wait() override { return absl::OkStatus(); }
  };
};

/// Stops at the third wait.
class ThirdWaitStops final : public Interruption {
 public:
  void Await(const std::shared_ptr<Event>&) override {
    if (++waits_ == 3) Stop();
  }

 private:
  int waits_ = 0;
};

TEST_F(KernelsInPartsTest, LaunchingIsAheadByTwoPartsAndStops) {
  Create(PartLimits{});
  // 0.1 s, in 20 parts of 5 ms.
  const auto solution =
      lists_.contraction.front()->Solve(Product(kF32, 100'000'000, 1)).value();
  EXPECT_EQ(solution->decision(), "in 20 parts, each: to note");
  scratch_.resize(static_cast<size_t>(solution->workspace_bytes()));
  Workspace workspace(scratch_);
  ThirdWaitStops interruption;
  AheadStream stream;
  stream.set_interruption(&interruption);
  EXPECT_EQ(solution->Launch({}, workspace, stream).code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(contraction_.size(), 4u);
}

/// Plans on an H200, of problems that no other machine has memory for.
class LargeProblemsTest : public ::testing::Test {
 protected:
  LargeProblemsTest() {
    simt::ResetNode(
        {.memory_bytes = int64_t{1} << 30, .multiprocessor_count = 132});
    backend_ = CreateCudaBackend(0).value();
  }

  std::string Choice(const AnyProblem& problem) {
    const auto plan = MakePlan(*backend_, {.problem = problem, .device = ""});
    return plan.ok() ? std::string(plan->kernel_name())
                     : plan.status().ToString();
  }

  std::unique_ptr<Backend> backend_;
};

TEST_F(LargeProblemsTest, AreTakenByTheKernelsOfSmallerOnes) {
  constexpr int64_t kSide = 65'536;
  PermutationProblem transpose{
      .is_move = true, .alignment_bytes = PermutationProblem::kWidestAccess};
  transpose.modes = {{kSide, {kSide, 1}}, {kSide, {1, kSide}}};
  EXPECT_EQ(Choice(transpose), "cuda.permute.tiled");

  ElementwiseProblem sum;
  sum.types = {kF32, kF32, kF32, kF32};
  sum.modes = {{5'000'000'000, {1, 0, 1, 1}}};
  EXPECT_EQ(Choice(sum), "cuda.elementwise.fused");

  ReductionProblem whole{.kept = {}, .reduced = {{5'000'000'000, {1}}}};
  EXPECT_EQ(Choice(whole), "cuda.reduce.tree");
  ReductionProblem rows{.kept = {{5'000'000'000, {4, 1, 1}}},
                        .reduced = {{4, {1}}}};
  EXPECT_EQ(Choice(rows), "cuda.reduce.tree");

  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{kSide, kSide, 64}, {3, 2, 5'000'000'000}}) {
    ContractionProblem product;
    product.m = {{m, {1, 1, 1}}};
    product.n = {{n, {k, m, m}}};
    product.k = {{k, {m, 1}}};
    for (const auto& kernel : backend_->kernels().contraction) {
      if (kernel->name() == "cuda.contract.direct_128x128") {
        EXPECT_EQ(kernel->Solve(product).status(), absl::OkStatus());
      }
    }
    EXPECT_NE(Choice(product), "cuda.contract.reference");
  }
}

}  // namespace
}  // namespace tensord::core::cuda
