// How a contraction becomes matrix products: what is copied, what is looped
// over, and which modes are the rows and columns.
#pragma once

#include <cstdint>

#include "core/backend/cpu/block/contraction_arithmetic.h"
#include "core/problem/contraction_problem.h"

namespace tensord::core {

/// The rates by which copying and looping are compared.
struct GemmRates {
  double flops_per_ns = 100;  // float32, one thread
  double bytes_per_ns = 10;   // copied, one thread
  int thread_count = 1;
  /// BLAS has kernels for small real products that use the operands where they
  /// are instead of copying them first.
  bool has_small_kernels = false;
};

/// d (m, n) = alpha * a (m, k) * b (k, n) + beta * d.
///
/// Units      strides count elements.
/// Invariant  IsMatrix() of each operand.
struct MatrixProduct {
  int64_t m = 1, n = 1, k = 1;
  int64_t a_m = 0, a_k = 0;
  int64_t b_k = 0, b_n = 0;
  int64_t d_m = 0, d_n = 0;

  bool operator==(const MatrixProduct&) const = default;
};

/// True when BLAS can take the matrix as it is: one of the two modes has
/// stride 1 (or extent 1), and the other one's lines do not overlap.
bool IsMatrix(int64_t rows, int64_t columns, int64_t row_stride,
              int64_t column_stride);

/// A copy of an operand in workspace, made before (a, b) or written back after
/// (d) the products.
struct GemmCopy {
  static constexpr size_t kTensor = 0, kCopy = 1, kAddend = 2;  // strides

  bool needed = false;
  LoopModes<3> modes;  // kAddend: those of c when the operand is d, else 0
  int64_t element_count = 0;  // of the copy

  bool operator==(const GemmCopy&) const = default;
};

/// A product for each element of `loops`, which are independent, summed over
/// `k_loops`. Strides of an operand that is copied are those of its copy.
struct GemmStrategy {
  static constexpr size_t kA = 0, kB = 1, kD = 2;  // strides

  /// Of the arithmetic and of the copies.
  ElementType type = ElementType::kFloat32;
  OperandRounding rounding = OperandRounding::kNone;
  GemmCopy a, b, d;
  MatrixProduct product;
  /// The product is done in blocks of d of this size.
  int64_t m_block = 1, n_block = 1;
  LoopModes<3> loops;
  LoopModes<2> k_loops;
  /// The sum over product.k is done in this many parts, each into a copy of d
  /// of its own; these are added in a fixed order. Above 1, d is copied and
  /// there are no k_loops.
  int64_t k_parts = 1;
  /// Predicted, for the whole.
  double nanoseconds = 0;

  bool operator==(const GemmStrategy&) const = default;
};

/// The type that matrix products of `problem` run in: float32, float64,
/// complex64, complex128 or the integer type of the operands.
ElementType GemmTypeOf(const ContractionProblem& problem);

/// The cheapest strategy by `rates`. A pure function: equal arguments give
/// equal results. Operands are copied when they are stored in another type,
/// need rounding, have modes to be summed before (a_only, b_only), or when BLAS
/// cannot take them as matrices or is slow on them.
///
/// Requires  a sum that is not empty.
GemmStrategy ChooseGemmStrategy(const ContractionProblem& problem,
                                const GemmRates& rates);

}  // namespace tensord::core
