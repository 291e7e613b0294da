#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/backend/cuda/contraction/contraction_kernels.h"
#include "core/backend/cuda/contraction/step.h"
#include "core/base/status.h"
#include "core/ops/operand_rounding.h"
#include "core/ops/type_tables.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;

UnaryOperator Conjugation(bool conjugates) {
  return conjugates ? UnaryOperator::kConj : UnaryOperator::kIdentity;
}

/// a and b as the operation's a and c.
ElementwiseProblem ProductOf(const Problem& problem) {
  const ElementType type = problem.type_d;
  LoopModes<4> modes = KeptModesOf(problem);
  for (auto& mode : modes) {
    mode.strides[ElementwiseProblem::kC] = mode.strides[ElementwiseProblem::kB];
    mode.strides[ElementwiseProblem::kB] = 0;
  }
  return {.types = {type, type, type, type},
          .unary = {Conjugation(problem.conj_a), UnaryOperator::kIdentity,
                    Conjugation(problem.conj_b)},
          .op_abc = BinaryOperator::kMul,
          .compute_type = DefaultComputeType(type),
          .modes = Canonical(std::move(modes), ElementwiseProblem::kD)};
}

ElementwiseProblem SumOf(const Problem& problem) {
  const ElementType type = problem.type_d;
  return {.types = {type, type, type, type},
          .unary = {Conjugation(problem.conj_a), Conjugation(problem.conj_b),
                    Conjugation(problem.conj_c)},
          .has_b = true,
          .op_ab = BinaryOperator::kMul,
          .op_abc = BinaryOperator::kAdd,
          .compute_type = DefaultComputeType(type),
          .modes = Canonical(KeptModesOf(problem), ElementwiseProblem::kD)};
}

using Step = std::unique_ptr<const ElementwiseSolution>;

class ElementwiseContractionSolution final : public ContractionSolution {
 public:
  /// d = a * b and d = a * b + c, element by element. Whether there is a c is
  /// not the problem's: the time is that without.
  ElementwiseContractionSolution(Step product, Step sum)
      : Solution(product->predicted_nanoseconds(),
                 std::max(product->workspace_bytes(), sum->workspace_bytes())),
        product_(std::move(product)),
        sum_(std::move(sum)) {}

  std::string decision() const override {
    return absl::StrCat("element by element: ", product_->decision());
  }
  int64_t bytes() const override {
    return HeapBlockBytes(sizeof(*this)) + HeapBytes(product_) +
           HeapBytes(sum_);
  }

  absl::Status Launch(const ContractionOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    // With an alpha of 0 neither a nor b is read.
    const Scalar of_b = operands.alpha.IsZero() ? kZero : kOne;
    if (operands.beta.IsZero()) {
      return product_->Launch({.a = operands.a,
                               .c = operands.b,
                               .d = operands.d,
                               .alpha = operands.alpha,
                               .gamma = of_b},
                              workspace, stream);
    }
    return sum_->Launch({.a = operands.a,
                         .b = operands.b,
                         .c = operands.c,
                         .d = operands.d,
                         .alpha = operands.alpha,
                         .beta = of_b,
                         .gamma = operands.beta},
                        workspace, stream);
  }

 private:
  const Step product_, sum_;
};

ContractionKernel::Solved Solve(const Problem& problem,
                                const KernelLists& lists) {
  if (problem.type_a != problem.type_d || problem.type_b != problem.type_d) {
    return Unimplemented("TYPES_DIFFER", "it takes operands of one type");
  }
  if (RoundingOf(problem.type_a, problem.compute_type) !=
      OperandRounding::kNone) {
    return Unimplemented("COMPUTE_TYPE_UNSUPPORTED",
                         "it does not round its operands");
  }
  if (!problem.k.empty() || !problem.a_only.empty() ||
      !problem.b_only.empty()) {
    return Unimplemented("NOT_ELEMENTWISE", "modes are summed");
  }
  return std::make_unique<ElementwiseContractionSolution>(
      StepOf(lists.elementwise, ProductOf(problem)),
      StepOf(lists.elementwise, SumOf(problem)));
}

}  // namespace

std::unique_ptr<const ContractionKernel> CreateElementwiseContraction(
    const KernelLists& lists) {
  return std::make_unique<SimpleContraction>(
      "cuda.contract.elementwise",
      [&](const Problem& problem) { return Solve(problem, lists); });
}

}  // namespace tensord::core::cuda
