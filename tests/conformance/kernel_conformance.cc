#include "tests/conformance/kernel_conformance.h"

#include <iostream>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tensord::test {

void KernelConformance::TearDown() {
  for (const auto& [kernel, record] : runner_.records()) {
    std::cout << kernel << ": " << record.runs << " runs, " << record.declines
              << " declined, worst error " << record.worst_error
              << " of the bound\n";
  }
  RecordProperty("cases_offered", absl::StrCat(runner_.offered_count()));
  RecordProperty("cases_taken", absl::StrCat(runner_.taken_count()));
}

namespace {

template <typename Draw>
void CheckRandomCases(uint32_t count, KernelRunner& runner, Draw&& draw) {
  for (uint32_t seed = 0; seed < count; ++seed) {
    SCOPED_TRACE(::testing::Message() << "case " << seed);
    std::mt19937 rng(seed);
    runner.Check(draw(rng));
    if (::testing::Test::HasFailure()) return;
  }
}

template <typename Draw>
void OfferRandomCases(KernelRunner& runner, Draw&& draw) {
  constexpr uint32_t kCases = 1500;
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    std::mt19937 rng(seed);
    runner.Offer(draw(rng));
  }
}

// One that always declines would pass every other test.
TEST_P(KernelConformance, EveryKernelSolvesSomeProblem) {
  OfferRandomCases(runner_, RandomPermutation);
  OfferRandomCases(runner_, RandomElementwise);
  OfferRandomCases(runner_, RandomReduction);
  OfferRandomCases(runner_, RandomContraction);
  for (const auto& [kernel, record] : runner_.records()) {
    EXPECT_TRUE(record.solved > 0 || GetParam().idle_kernels.contains(kernel))
        << kernel << " declined all of " << record.declines;
  }
}

// A0.2
TEST_P(KernelConformance, BackendsComeAndGoOnManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 5; ++round) {
        const auto backend = GetParam().create(2);
        const auto stream = backend->CreateStream();
        ASSERT_TRUE(stream.ok()) << stream.status();
        const auto buffer = core::Buffer::Allocate(backend->memory(), 1000);
        ASSERT_TRUE(buffer.ok()) << buffer.status();
        EXPECT_TRUE((*stream)->Synchronize().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(KernelConformance, PermutesRandomProblems) {
  CheckRandomCases(GetParam().random_case_count, runner_, RandomPermutation);
}

TEST_P(KernelConformance, ComputesRandomElementwiseProblems) {
  CheckRandomCases(GetParam().random_case_count, runner_, RandomElementwise);
}

TEST_P(KernelConformance, ReducesRandomProblems) {
  CheckRandomCases(GetParam().random_case_count, runner_, RandomReduction);
}

TEST_P(KernelConformance, ContractsRandomProblems) {
  CheckRandomCases(GetParam().random_contraction_count, runner_,
                   RandomContraction);
}

}  // namespace
}  // namespace tensord::test
