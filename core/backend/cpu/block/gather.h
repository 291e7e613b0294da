// Views that have no strides, element by element.
#pragma once

#include "core/backend/backend.h"
#include "core/backend/cpu/thread_pool.h"

namespace tensord::core {

/// As Backend::Gather; done on return.
void Gather(ThreadPool& threads, const GatherSteps& steps,
            const GatherOperands& operands);

/// As Backend::Scatter; done on return.
void Scatter(ThreadPool& threads, const GatherSteps& steps,
             const ScatterOperands& operands);

}  // namespace tensord::core
