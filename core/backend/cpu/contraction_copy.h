// Copying the operands of matrix products into workspace and the result back,
// with the conversions that products cannot do.
#pragma once

#include "core/backend/cpu/block/contraction_arithmetic.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/ops/scalar.h"
#include "core/problem/loop_modes.h"

namespace tensord::core {

/// copy = sum over `summed` of round(convert(tensor)); the sum is pairwise (of
/// bool: or).
struct OperandCopy {
  static constexpr size_t kTensor = 0, kCopy = 1;  // strides

  ElementType from;
  ElementType to;  // float32, float64, complex or integer
  OperandRounding rounding = OperandRounding::kNone;
  LoopModes<2> modes;
  LoopModes<1> summed;
};

/// Aliasing  `tensor` and `copy` may be the same when the modes' strides are
///           equal.
void CopyOperand(ThreadPool& threads, const OperandCopy& request,
                 const void* tensor, void* copy);

/// d = result + beta * conj_if(conj_c, c)
struct ResultCopy {
  static constexpr size_t kResult = 0, kC = 1, kD = 2;  // strides

  ElementType from;  // of result and of the arithmetic
  ElementType to;    // of c and d
  bool conj_c = false;
  LoopModes<3> modes;
};

/// `result` null: zeros. c is not read when beta is 0.
/// Aliasing  c and d may be the same when the modes' strides are equal.
void CopyResult(ThreadPool& threads, const ResultCopy& request,
                const Scalar& beta, const void* result, const void* c, void* d);

}  // namespace tensord::core
