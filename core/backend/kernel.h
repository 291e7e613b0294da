// One way of solving one kind of problem on one kind of device.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/backend/solution.h"
#include "core/ops/scalar.h"
#include "core/problem/contraction_problem.h"
#include "core/problem/elementwise_problem.h"
#include "core/problem/factorization_problem.h"
#include "core/problem/linear_solve_problem.h"
#include "core/problem/permutation_problem.h"
#include "core/problem/reduction_problem.h"

namespace tensord::core {

// The addresses and factors of one execution. Each pointer is that of the
// operand's first element. An input whose factor is zero may be null and is not
// read; b is null in a binary element-wise operation.

/// Requires  alpha is 1 where the problem moves bits.
struct PermutationOperands {
  const void* a = nullptr;
  void* d = nullptr;
  Scalar alpha = kOne;
};

struct ElementwiseOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  Scalar alpha = kOne;
  Scalar beta = kOne;
  Scalar gamma = kOne;
};

struct ReductionOperands {
  const void* a = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  Scalar alpha = kOne;
  Scalar beta = kZero;
};

struct ContractionOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  Scalar alpha = kOne;
  Scalar beta = kZero;
};

/// Results share no memory with a or each other; those that the problem lacks
/// are null.
struct FactorizationOperands {
  const void* a = nullptr;
  void* left = nullptr;
  void* right = nullptr;
  void* values = nullptr;
  Truncation truncation = {};
  /// Of an SVD: how many values are kept, the most of any matrix. May be null.
  int64_t* kept = nullptr;
};

/// b is null where the problem has none.
struct LinearSolveOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
};

using PermutationSolution = Solution<PermutationOperands>;
using ElementwiseSolution = Solution<ElementwiseOperands>;
using ReductionSolution = Solution<ReductionOperands>;
using ContractionSolution = Solution<ContractionOperands>;
using FactorizationSolution = Solution<FactorizationOperands>;
using LinearSolveSolution = Solution<LinearSolveOperands>;

/// One way of solving problems of one operation.
///
/// Threads  every method is const and may be called concurrently.
/// Owner    the backend's kernel list; lives as long as the backend.
template <typename Problem, typename Operands>
class Kernel {
 public:
  using Solved = absl::StatusOr<std::unique_ptr<const Solution<Operands>>>;

  virtual ~Kernel() = default;

  /// Stable name shown in plans and metrics, e.g. "cpu.contract.gemm".
  virtual absl::string_view name() const = 0;

  /// Raise it when stored plans or timings become invalid.
  virtual int version() const { return 1; }

  /// Decides how to solve `problem`, once for all launches and whatever the
  /// factors. Deterministic; the planner takes the kernel whose solution
  /// predicts least and, of equals, the first in the list.
  ///
  /// Requires  d has elements.
  /// Errors    UNIMPLEMENTED, with a reason that ExplainPlan shows to the user:
  ///           the kernel declines. UNAVAILABLE: the device is lost. INTERNAL:
  ///           what a library says.
  virtual Solved Solve(const Problem& problem) const = 0;
};

/// A kernel that is no more than a name and a function: its Solve().
template <typename Problem, typename Operands>
class SimpleKernel final : public Kernel<Problem, Operands> {
 public:
  using typename Kernel<Problem, Operands>::Solved;

  SimpleKernel(std::string name, std::function<Solved(const Problem&)> solve)
      : name_(std::move(name)), solve_(std::move(solve)) {}

  absl::string_view name() const override { return name_; }
  Solved Solve(const Problem& problem) const override {
    return solve_(problem);
  }

 private:
  const std::string name_;
  const std::function<Solved(const Problem&)> solve_;
};

using PermutationKernel = Kernel<PermutationProblem, PermutationOperands>;
using ElementwiseKernel = Kernel<ElementwiseProblem, ElementwiseOperands>;
using ReductionKernel = Kernel<ReductionProblem, ReductionOperands>;
using ContractionKernel = Kernel<ContractionProblem, ContractionOperands>;
using FactorizationKernel = Kernel<FactorizationProblem, FactorizationOperands>;
using LinearSolveKernel = Kernel<LinearSolveProblem, LinearSolveOperands>;

using SimplePermutation = SimpleKernel<PermutationProblem, PermutationOperands>;
using SimpleElementwise = SimpleKernel<ElementwiseProblem, ElementwiseOperands>;
using SimpleReduction = SimpleKernel<ReductionProblem, ReductionOperands>;
using SimpleContraction = SimpleKernel<ContractionProblem, ContractionOperands>;
using SimpleFactorization =
    SimpleKernel<FactorizationProblem, FactorizationOperands>;
using SimpleLinearSolve = SimpleKernel<LinearSolveProblem, LinearSolveOperands>;

}  // namespace tensord::core
