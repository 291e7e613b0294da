#include "tests/conformance/kernel_conformance.h"

#include <iostream>

namespace tensord::test {
namespace {

constexpr uint32_t kRandomCases = 1500;

}  // namespace

void KernelConformance::TearDown() {
  for (const auto& [kernel, record] : runner_.records()) {
    std::cout << kernel << ": " << record.runs << " runs, " << record.declines
              << " declined, worst error " << record.worst_error
              << " of the bound\n";
  }
}

namespace {

template <typename Draw>
void CheckRandomCases(KernelRunner& runner, Draw&& draw) {
  for (uint32_t seed = 0; seed < kRandomCases; ++seed) {
    SCOPED_TRACE(::testing::Message() << "case " << seed);
    std::mt19937 rng(seed);
    runner.Check(draw(rng));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST_P(KernelConformance, PermutesRandomProblems) {
  CheckRandomCases(runner_, RandomPermutation);
}

TEST_P(KernelConformance, ComputesRandomElementwiseProblems) {
  CheckRandomCases(runner_, RandomElementwise);
}

TEST_P(KernelConformance, ReducesRandomProblems) {
  CheckRandomCases(runner_, RandomReduction);
}

TEST_P(KernelConformance, ContractsRandomProblems) {
  CheckRandomCases(runner_, RandomContraction);
}

}  // namespace
}  // namespace tensord::test
