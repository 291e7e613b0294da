// Any contraction, a thread an element of d.
#include "core/backend/cuda/kernel/contraction_tasks.h"
#include "core/backend/cuda/kernel/expression.cuh"
#include "core/backend/cuda/kernel/index_space.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/operand_rounding.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 128;

/// The sum of `data` over modes that it alone has.
template <typename T>
__device__ T SumOver(const Arithmetic& arithmetic, const Loops<1>& loops,
                     const void* data, ElementType type,
                     OperandRounding rounding, bool conjugates, int64_t base) {
  T sum = T(0);
  for (int64_t i = 0; i < loops.count; ++i) {
    const int64_t at = base + OffsetsOf(loops, i).at[0];
    sum = ApplyReducing(arithmetic, BinaryOperator::kAdd, sum,
                      Rounded(rounding, Load<T>(data, type, at)));
  }
  return ConjugatedIf(conjugates, sum);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Reference(const ContractionReferenceTask __grid_constant__ task) {
  const ContractionFormula& formula = task.formula;
  const Arithmetic arithmetic{formula.type_d, Rounding::kNone};
  ForEachIndex(task.kept.count, [&](int64_t index) {
    const Offsets<4> base = OffsetsOf(task.kept, index);
    T value = T(0);
    if (formula.a != nullptr) {
      for (int64_t k = 0; k < task.k.count; ++k) {
        const Offsets<2> at = OffsetsOf(task.k, k);
        const T a = SumOver<T>(arithmetic, task.a_only, formula.a,
                               formula.type_a, formula.rounding_a,
                               formula.conj_a, base.at[0] + at.at[0]);
        const T b = SumOver<T>(arithmetic, task.b_only, formula.b,
                               formula.type_b, formula.rounding_b,
                               formula.conj_b, base.at[1] + at.at[1]);
        value = ApplyReducing(arithmetic, BinaryOperator::kAdd, value,
                            arithmetic.Settle(Multiply(a, b)));
      }
      value = Scaled(arithmetic, formula.alpha, value);
    }
    if (formula.c != nullptr) {
      const T c = ConjugatedIf(formula.conj_c,
                               Load<T>(formula.c, formula.type_d, base.at[2]));
      const T scaled = Scaled(arithmetic, formula.beta, c);
      value = ApplyReducing(arithmetic, BinaryOperator::kAdd, value, scaled);
    }
    Store(formula.d, formula.type_d, base.at[3], value);
  });
}

}  // namespace

cudaError_t QueueContractionReference(const ContractionReferenceTask& task,
                                      cudaStream_t stream) {
  const Grid grid = GridOf(task.kept.count, kThreads);
  switch (task.compute) {
    case ElementType::kFloat64:
      return Launch(grid, stream, &Reference<double>, task);
    case ElementType::kComplex128:
      return Launch(grid, stream, &Reference<std::complex<double>>, task);
    default: return Launch(grid, stream, &Reference<int64_t>, task);
  }
}

}  // namespace tensord::core::cuda
