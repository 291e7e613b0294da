// Any contraction, a thread an element of d.
#include <algorithm>

#include "core/backend/cuda/kernel/contraction_tasks.h"
#include "core/backend/cuda/kernel/expression.cuh"
#include "core/backend/cuda/kernel/launch.cuh"
#include "core/backend/cuda/kernel/operand_rounding.cuh"

namespace tensord::core::cuda {
namespace {

constexpr uint32_t kThreads = 128;
constexpr int64_t kMaxBlocks = 1 << 16;

/// Adds the offsets of the `index`-th turn of `loops` to `offsets`.
template <int operand_count, int max_modes>
__device__ __forceinline__ void AddOffsets(
    const Loops<operand_count, max_modes>& loops, int64_t index,
    int64_t (&offsets)[operand_count]) {
  for (int m = 0; m < loops.mode_count; ++m) {
    const auto& mode = loops.modes[m];
    const int64_t next = index / mode.extent;
    for (int i = 0; i < operand_count; ++i) {
      offsets[i] += (index - next * mode.extent) * mode.strides[i];
    }
    index = next;
  }
}

/// The sum of `data` over modes that it alone has.
template <typename T>
__device__ T SumOver(const Arithmetic& arithmetic,
                     const Loops<1, kMaxModes>& loops, const void* data,
                     ElementType type, OperandRounding rounding,
                     bool conjugates, int64_t base) {
  T sum = T(0);
  for (int64_t i = 0; i < loops.count; ++i) {
    int64_t at[1] = {base};
    AddOffsets(loops, i, at);
    sum = ApplyBinary(arithmetic, BinaryOperator::kAdd, sum,
                      Rounded(rounding, Load<T>(data, type, at[0])));
  }
  return ConjugatedIf(conjugates, sum);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    Reference(const ContractionReferenceTask __grid_constant__ task) {
  const ContractionFormula& formula = task.formula;
  const Arithmetic arithmetic{formula.type_d, Rounding::kNone};
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t index = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       index < task.kept.count; index += step) {
    int64_t base[4] = {};
    AddOffsets(task.kept, index, base);
    T value = T(0);
    if (formula.a != nullptr) {
      for (int64_t k = 0; k < task.k.count; ++k) {
        int64_t at[2] = {base[0], base[1]};
        AddOffsets(task.k, k, at);
        const T a =
            SumOver<T>(arithmetic, task.a_only, formula.a, formula.type_a,
                       formula.rounding_a, formula.conj_a, at[0]);
        const T b =
            SumOver<T>(arithmetic, task.b_only, formula.b, formula.type_b,
                       formula.rounding_b, formula.conj_b, at[1]);
        value = ApplyBinary(arithmetic, BinaryOperator::kAdd, value,
                            arithmetic.Settle(Multiply(a, b)));
      }
      value = Scaled(arithmetic, formula.alpha, value);
    }
    if (formula.c != nullptr) {
      const T c = ConjugatedIf(formula.conj_c,
                               Load<T>(formula.c, formula.type_d, base[2]));
      const T scaled = Scaled(arithmetic, formula.beta, c);
      value = ApplyBinary(arithmetic, BinaryOperator::kAdd, value, scaled);
    }
    Store(formula.d, formula.type_d, base[3], value);
  }
}

}  // namespace

cudaError_t QueueContractionReference(const ContractionReferenceTask& task,
                                      cudaStream_t stream) {
  const Grid grid{.blocks = static_cast<uint32_t>(std::min(
                      (task.kept.count + kThreads - 1) / kThreads, kMaxBlocks)),
                  .threads = kThreads};
  switch (task.compute) {
    case ElementType::kFloat64:
      return Launch(grid, stream, &Reference<double>, task);
    case ElementType::kComplex128:
      return Launch(grid, stream, &Reference<std::complex<double>>, task);
    default: return Launch(grid, stream, &Reference<int64_t>, task);
  }
}

}  // namespace tensord::core::cuda
