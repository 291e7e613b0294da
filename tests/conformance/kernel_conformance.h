// What every kernel of every backend must do. A backend joins with one line:
//
//   INSTANTIATE_TEST_SUITE_P(Cpu, KernelConformance,
//                            ::testing::Values(ConformanceTarget{...}),
//                            NameOf);
#pragma once

#include <string>

#include "gtest/gtest.h"
#include "tests/conformance/kernel_runner.h"

namespace tensord::test {

/// One runner a test, on two threads so that loops are split on any machine.
class KernelConformance : public ::testing::TestWithParam<ConformanceTarget> {
 protected:
  KernelConformance() : runner_(SetUpTarget(GetParam()), 2) {}

  /// Reports runs, refusals and worst error of each kernel with the result, and
  /// which share of the cases was taken (tests/verdict/summarize.py).
  void TearDown() override;

  KernelRunner runner_;

 private:
  static const ConformanceTarget& SetUpTarget(const ConformanceTarget& target) {
    target.set_up();
    return target;
  }
};

inline std::string NameOf(
    const ::testing::TestParamInfo<ConformanceTarget>& info) {
  return info.param.name;
}

}  // namespace tensord::test
