// One value everywhere: how the device is told.
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/cuda/kernel/fill/fill_task.h"

namespace tensord::core::cuda {

/// Tasks that do it together: in words as wide as extents, strides and address
/// allow, none of more than `limit` of them.
/// Requires  1 <= limit <= kMaxIndex.
std::vector<FillTask> FillTasksOf(const FillOperands& operands,
                                  int64_t limit = kMaxIndex);

}  // namespace tensord::core::cuda
