// One matrix product on one thread.
#pragma once

#include "core/backend/cpu/gemm/blas.h"
#include "core/backend/cpu/gemm/gemm_strategy.h"

namespace tensord::core {

/// d = alpha * a * b + beta * d in `type`, by BLAS, and for integers by loops
/// of our own that wrap (bool: an or of ands). d is not read when beta is 0.
/// BLAS gets pieces of k so that no call has many more terms than `most_terms`;
/// between them, CurrentWork is heard.
///
/// Requires  `blas` unless `type` is an integer.
void Multiply(const Blas* blas, ElementType type, const MatrixProduct& product,
              int64_t most_terms, bool conj_a, bool conj_b, const Scalar& alpha,
              const void* a, const void* b, const Scalar& beta, void* d);

}  // namespace tensord::core
