// What is left of a contraction without products: d = beta * c.
#pragma once

#include "core/backend/cpu/contraction_copy.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// The scaling of `problem`: d = beta * conj_if(problem.conj_c, c), for modes
/// that are Canonical() led by d.
ResultCopy ScalingOf(const ContractionProblem& problem);

/// Aliasing  d may be c when their strides are equal.
void ScaleResult(ThreadPool& threads, const ResultCopy& scaling,
                 const ContractionOperands& operands);

}  // namespace tensord::core
