#include "tests/conformance/kernel_conformance.h"

#include <iostream>

namespace tensord::test {

void KernelConformance::TearDown() {
  for (const auto& [kernel, record] : runner_.records()) {
    std::cout << kernel << ": " << record.runs << " runs, " << record.declines
              << " declined, worst error " << record.worst_error
              << " of the bound\n";
  }
}

namespace {

template <typename Draw>
void CheckRandomCases(const ConformanceTarget& target, KernelRunner& runner,
                      Draw&& draw) {
  for (uint32_t seed = 0; seed < target.random_case_count; ++seed) {
    SCOPED_TRACE(::testing::Message() << "case " << seed);
    std::mt19937 rng(seed);
    runner.Check(draw(rng));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST_P(KernelConformance, PermutesRandomProblems) {
  CheckRandomCases(GetParam(), runner_, RandomPermutation);
}

TEST_P(KernelConformance, ComputesRandomElementwiseProblems) {
  CheckRandomCases(GetParam(), runner_, RandomElementwise);
}

TEST_P(KernelConformance, ReducesRandomProblems) {
  CheckRandomCases(GetParam(), runner_, RandomReduction);
}

TEST_P(KernelConformance, ContractsRandomProblems) {
  CheckRandomCases(GetParam(), runner_, RandomContraction);
}

}  // namespace
}  // namespace tensord::test
