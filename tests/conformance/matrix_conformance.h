// What every kernel of every backend must do that factorizes matrices. A
// backend joins with a line for each of the two suites:
//
//   INSTANTIATE_TEST_SUITE_P(Cpu, DecompositionConformance,
//                            ::testing::Values(MatrixTarget{...}),
//                            NameOfTarget);
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/ops/factorization.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tensord::core {

/// Kernels of a backend, and which of them is for what.
struct MatrixTarget {
  std::string name;
  std::function<std::unique_ptr<Backend>()> create;
  std::map<FactorizationMethod, std::vector<std::string>> kernels;
  std::function<void()> set_up = [] {};
};

inline std::string NameOfTarget(
    const ::testing::TestParamInfo<MatrixTarget>& info) {
  return info.param.name;
}

class MatrixConformance : public ::testing::TestWithParam<MatrixTarget> {
 protected:
  MatrixConformance() {
    GetParam().set_up();
    backend_ = GetParam().create();
  }

  /// Calls check with each kernel of the backend that is for `method`.
  template <typename Check>
  void ForEachKernel(FactorizationMethod method, const Check& check) {
    for (const std::string& name : GetParam().kernels.at(method)) {
      SCOPED_TRACE(name);
      bool is_there = false;
      for (const auto& kernel : backend_->kernels().factorization) {
        if (kernel->name() != name) continue;
        is_there = true;
        check(*kernel);
      }
      EXPECT_TRUE(is_there);
    }
  }

  std::unique_ptr<Backend> backend_;
};

/// QR and LQ.
class FactorizationConformance : public MatrixConformance {};

/// SVD, EIGH and CHOLESKY.
class DecompositionConformance : public MatrixConformance {};

}  // namespace tensord::core
