// What every kernel of every backend must do that factorizes matrices or solves
// equations. A backend joins with a line for each of the suites:
//
//   INSTANTIATE_TEST_SUITE_P(Cpu, DecompositionConformance,
//                            ::testing::Values(MatrixTarget{...}),
//                            NameOfTarget);
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
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
  std::vector<std::string> sampling;  // SVDs of random samples
  std::vector<std::string> solving;
  /// The side of the largest matrix: one that takes some seconds.
  int64_t large_extent = 2100;
  std::function<void()> set_up = [] {};

  friend void PrintTo(const MatrixTarget& target, std::ostream* out) {
    *out << target.name;
  }
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

  /// No kernel goes untested.
  void SetUp() override {
    const KernelLists& lists = backend_->kernels();
    std::set<std::string> factorizing;
    for (const auto& [method, names] : GetParam().kernels) {
      factorizing.insert(names.begin(), names.end());
    }
    factorizing.insert(GetParam().sampling.begin(), GetParam().sampling.end());
    ASSERT_THAT(NamesOf(lists.factorization),
                ::testing::UnorderedElementsAreArray(factorizing));
    ASSERT_THAT(NamesOf(lists.linear_solve),
                ::testing::UnorderedElementsAreArray(GetParam().solving));
  }

  /// Calls check with each kernel of the backend that is for `method`.
  template <typename Check>
  void ForEachKernel(FactorizationMethod method, const Check& check) {
    ForEachOf(backend_->kernels().factorization, GetParam().kernels.at(method),
              check);
  }
  /// With each that takes a random sample, or need not.
  template <typename Check>
  void ForEachSampler(const Check& check) {
    ForEachOf(backend_->kernels().factorization, GetParam().sampling, check);
  }
  /// With each that solves equations.
  template <typename Check>
  void ForEachSolver(const Check& check) {
    ForEachOf(backend_->kernels().linear_solve, GetParam().solving, check);
  }

  std::unique_ptr<Backend> backend_;

 private:
  template <typename Kernels>
  static std::vector<std::string> NamesOf(const Kernels& kernels) {
    std::vector<std::string> names;
    for (const auto& kernel : kernels) names.emplace_back(kernel->name());
    return names;
  }

  template <typename Kernels, typename Check>
  static void ForEachOf(const Kernels& kernels,
                        const std::vector<std::string>& names,
                        const Check& check) {
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      const auto found = std::ranges::find(
          kernels, name, [](const auto& k) { return k->name(); });
      ASSERT_NE(found, kernels.end());
      check(**found);
    }
  }
};

/// QR and LQ.
class FactorizationConformance : public MatrixConformance {};

/// SVD, EIGH and CHOLESKY.
class DecompositionConformance : public MatrixConformance {};

/// SVD of random samples.
class SampledSvdConformance : public MatrixConformance {};

/// Equations and exponentials.
class LinearSolveConformance : public MatrixConformance {
 protected:
  /// For large matrices: the first of those that solve equations.
  const LinearSolveKernel& LargeSolver() {
    const LinearSolveKernel* first = nullptr;
    ForEachSolver([&](const LinearSolveKernel& kernel) {
      if (first == nullptr) first = &kernel;
    });
    return *first;
  }
};

}  // namespace tensord::core
