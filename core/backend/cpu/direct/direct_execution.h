// Doing a contraction in one of the ways of the direct kernel.
#pragma once

#include <cstdint>

#include "core/backend/cpu/direct/direct_way.h"
#include "core/backend/cpu/thread_pool.h"
#include "core/backend/kernel.h"

namespace tensord::core {

/// What ExecuteDirectWay() needs on so many threads; exact.
int64_t DirectWorkspaceBytes(const DirectWay& way, int thread_count);

/// The contraction that `way` was made for, on all threads. Each element of d
/// is summed in an order that the way alone decides.
///
/// Requires  alpha is not 0; workspace of DirectWorkspaceBytes().
/// Aliasing  d may be c when their strides are equal.
void ExecuteDirectWay(const DirectWay& way, const ContractionOperands& operands,
                      ThreadPool& threads, Workspace& workspace);

}  // namespace tensord::core
