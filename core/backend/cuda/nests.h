// Filling and copying along strides, as tasks for the device.
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/cuda/kernel/nest/nest_tasks.h"

namespace tensord::core::cuda {

/// Tasks that together do what is asked, in words as wide as extents, strides
/// and addresses allow, each of at most `limit` words.
/// Requires  1 <= limit <= kMaxIndex.
std::vector<FillTask> TasksOf(const FillOperands& operands,
                              int64_t limit = kMaxIndex);
std::vector<CopyTask> TasksOf(const CopyOperands& operands,
                              int64_t limit = kMaxIndex);

}  // namespace tensord::core::cuda
