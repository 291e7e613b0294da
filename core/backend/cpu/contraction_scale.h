// What is left of a contraction without products: d = beta * c.
#pragma once

#include "core/backend/cpu/contraction_copy.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// All modes of c and d, as ResultCopy has them; strides of the result are 0.
LoopModes<3> ResultModes(const ContractionProblem& problem);

/// d = beta * conj_if(problem.conj_c, c)
/// Aliasing  d may be c when their strides are equal.
void ScaleResult(ThreadPool& threads, const ContractionProblem& problem,
                 const ContractionOperands& operands);

}  // namespace tensord::core
