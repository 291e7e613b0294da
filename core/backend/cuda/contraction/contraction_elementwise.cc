#include <algorithm>
#include <memory>
#include <utility>

#include "core/backend/cuda/contraction/contraction_kernels.h"
#include "core/backend/cuda/contraction/step.h"
#include "core/base/memo.h"
#include "core/base/status.h"
#include "core/ops/operand_rounding.h"
#include "core/ops/type_tables.h"

namespace tensord::core::cuda {
namespace {

using Problem = ContractionProblem;

// Problems whose ways are kept.
constexpr size_t kMostKnown = 1024;

/// d = a * b and d = a * b + c, element by element.
struct Way {
  ElementwiseStep product, sum;
};

/// Every mode, with its strides in a, b, c and d.
LoopModes<4> ModesOf(const Problem& problem) {
  LoopModes<4> modes = problem.batch;
  for (const auto& [extent, s] : problem.m) {
    modes.push_back(
        {extent,
         {s[Problem::kFreeInput], 0, s[Problem::kFreeC], s[Problem::kFreeD]}});
  }
  for (const auto& [extent, s] : problem.n) {
    modes.push_back(
        {extent,
         {0, s[Problem::kFreeInput], s[Problem::kFreeC], s[Problem::kFreeD]}});
  }
  return modes;
}

UnaryOperator Conjugation(bool conjugates) {
  return conjugates ? UnaryOperator::kConj : UnaryOperator::kIdentity;
}

/// a and b as the operation's a and c.
ElementwiseProblem ProductOf(const Problem& problem) {
  const ElementType type = problem.type_d;
  LoopModes<4> modes = ModesOf(problem);
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
          .modes = Canonical(ModesOf(problem), ElementwiseProblem::kD)};
}

class ElementwiseContraction final : public ContractionKernel {
 public:
  explicit ElementwiseContraction(const KernelLists& lists) : lists_(lists) {}

  absl::string_view name() const override {
    return "cuda.contract.elementwise";
  }

  absl::Status Supports(const Problem& problem) const override {
    return WayOf(problem).status();
  }

  int64_t WorkspaceBytes(const Problem& problem) const override {
    const auto way = WayOf(problem);
    return way.ok() ? std::max((*way)->product.workspace_bytes(),
                               (*way)->sum.workspace_bytes())
                    : 0;
  }

  /// Without c: whether there is one is not the problem's.
  double PredictNanoseconds(const Problem& problem) const override {
    const auto way = WayOf(problem);
    return way.ok() ? (*way)->product.nanoseconds : 0;
  }

  absl::Status Launch(const Problem& problem,
                      const ContractionOperands& operands, Workspace& workspace,
                      Stream& stream) const override {
    TENSORD_ASSIGN_OR_RETURN(const std::shared_ptr<const Way> way,
                             WayOf(problem));
    // With an alpha of 0 neither a nor b is read.
    const Scalar of_b = operands.alpha.IsZero() ? kZero : kOne;
    if (operands.beta.IsZero()) {
      return way->product.kernel->Launch(way->product.problem,
                                         {.a = operands.a,
                                          .c = operands.b,
                                          .d = operands.d,
                                          .alpha = operands.alpha,
                                          .gamma = of_b},
                                         workspace, stream);
    }
    return way->sum.kernel->Launch(way->sum.problem,
                                   {.a = operands.a,
                                    .b = operands.b,
                                    .c = operands.c,
                                    .d = operands.d,
                                    .alpha = operands.alpha,
                                    .beta = of_b,
                                    .gamma = operands.beta},
                                   workspace, stream);
  }

 private:
  using Ways = Memo<Problem, Way>;

  Ways::Answer WayOf(const Problem& problem) const {
    return ways_.Get(problem, [&] { return Decide(problem); });
  }

  Ways::Answer Decide(const Problem& problem) const {
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
    return std::make_shared<const Way>(
        Way{StepOf(lists_.elementwise, ProductOf(problem)),
            StepOf(lists_.elementwise, SumOf(problem))});
  }

  const KernelLists& lists_;
  mutable Ways ways_{kMostKnown};  // so that launches need not decide
};

}  // namespace

std::unique_ptr<const ContractionKernel> CreateElementwiseContraction(
    const KernelLists& lists) {
  return std::make_unique<ElementwiseContraction>(lists);
}

}  // namespace tensord::core::cuda
