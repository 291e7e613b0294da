// GemmCalls for the interpreter that stands in for cuBLASLt.
#pragma once

#include "core/backend/cuda/gemm/gemm_call.h"
#include "tests/simt/cublaslt/matmul.h"

namespace tensord::test {

/// `call` on matrices of complex128, without addresses and factors.
inline simt::Matmul MatmulOf(const core::cuda::GemmCall& call) {
  using core::cuda::GemmForm;
  const auto op = [](GemmForm form) {
    return form == GemmForm::kPlain        ? CUBLAS_OP_N
           : form == GemmForm::kTransposed ? CUBLAS_OP_T
                                           : CUBLAS_OP_C;
  };
  const auto layout = [&](const core::cuda::GemmMatrix& matrix, int64_t rows,
                          int64_t columns) {
    return simt::MatmulMatrix{
        .type = CUDA_C_64F,
        .rows = rows,
        .cols = columns,
        .ld = matrix.leading_stride,
        .batch_count = static_cast<int32_t>(call.batch_count),
        .batch_stride = matrix.batch_stride};
  };
  return {.compute = CUBLAS_COMPUTE_64F,
          .op_a = op(call.form_a),
          .op_b = op(call.form_b),
          .layout_a = layout(call.a, call.rows_a(), call.columns_a()),
          .layout_b = layout(call.b, call.rows_b(), call.columns_b()),
          .layout_c = layout(call.c, call.m, call.n),
          .layout_d = layout(call.d, call.m, call.n)};
}

}  // namespace tensord::test
