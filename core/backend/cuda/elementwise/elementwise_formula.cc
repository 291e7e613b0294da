#include "core/backend/cuda/elementwise/elementwise_formula.h"

#include "core/backend/cuda/cuda_stream.h"
#include "core/base/status.h"
#include "core/ops/type_tables.h"
#include "core/problem/taking.h"

namespace tensord::core::cuda {
namespace {

using Problem = ElementwiseProblem;

constexpr size_t kD = Problem::kD;

}  // namespace

Expression ExpressionOf(const Problem& problem,
                        const ElementwiseOperands& operands) {
  Expression expression{.inputs = {operands.a, operands.b, operands.c},
                        .d = operands.d,
                        .compute = problem.compute_element(),
                        .compute_type = problem.compute_type,
                        .has_b = problem.has_b,
                        .op_ab = problem.op_ab,
                        .op_abc = problem.op_abc};
  const Scalar factors[3] = {operands.alpha, operands.beta, operands.gamma};
  for (size_t i = 0; i < 3; ++i) {
    expression.types[i] = problem.types[i];
    expression.unary[i] = problem.unary[i];
    expression.is_scaled[i] = !factors[i].IsOne();
    expression.factors[i][0] = factors[i].real;
    expression.factors[i][1] = factors[i].imaginary;
    if (factors[i].IsZero()) expression.inputs[i] = nullptr;
  }
  if (!problem.has_b) expression.inputs[Problem::kB] = nullptr;
  const ElementType type_d = problem.types[kD];
  expression.types[kD] = type_d;
  const auto is_uniform = [](BinaryOperator op) {
    return Reduces(op) || op == BinaryOperator::kDiv;
  };
  expression.is_uniform =
      is_uniform(problem.op_ab) && is_uniform(problem.op_abc) &&
      expression.compute ==
          ComputeElement(type_d, type_d, DefaultComputeType(type_d));
  expression.is_plain = true;
  for (size_t i = 0; i < 3; ++i) {
    if (expression.inputs[i] == nullptr) continue;
    expression.is_uniform &= expression.types[i] == type_d;
    expression.is_plain &= expression.unary[i] == UnaryOperator::kIdentity;
  }
  return expression;
}

bool IsInput(const Problem& problem, size_t operand) {
  return operand < kD && (operand != Problem::kB || problem.has_b);
}

int64_t RunAlong(const Problem& problem, size_t operand,
                 const std::vector<size_t>& order, const Parts& parts) {
  int64_t run = 1;
  for (const size_t m : order) {
    const auto& mode = problem.modes[m];
    if (mode.strides[operand] == 0) continue;
    if (mode.strides[operand] != run) break;
    run *= parts[m];
    if (parts[m] < mode.extent) break;
  }
  return run;
}

double BytesInRuns(const Problem& problem, size_t operand, int64_t run) {
  double count = 1;
  for (const auto& mode : problem.modes) {
    if (mode.strides[operand] != 0) count *= static_cast<double>(mode.extent);
  }
  const auto size = static_cast<double>(SizeOf(problem.types[operand]));
  const auto elements = static_cast<double>(run);
  return count / elements * SectorBytes(elements * size);
}

absl::Status CheckComputes(const Problem& problem) {
  TENSORD_RETURN_IF_ERROR(CheckTakesNothing(problem));
  return CheckCount(problem);
}

absl::Status CheckCount(const Problem& problem) {
  if (ElementCount(problem.modes) <= kMaxIndex) return absl::OkStatus();
  return Unimplemented("TOO_MANY_ELEMENTS", "it has ",
                       ElementCount(problem.modes), " elements, at most ",
                       kMaxIndex, " are possible");
}

absl::Status CudaElementwiseSolution::Launch(
    const ElementwiseOperands& operands, Workspace&, Stream& stream) const {
  CudaStream& queue = AsCuda(stream);
  TENSORD_RETURN_IF_ERROR(queue.device().Select());
  return queue.device().Check(
      Queue(ExpressionOf(problem_, operands), queue.get()),
      absl::StrCat("launching ", kernel_));
}

}  // namespace tensord::core::cuda
