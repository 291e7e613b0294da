// How much of a GPU's arithmetic the tiles of direct kernels reach.
#pragma once

#include <cstdint>

#include "core/backend/cuda/gpu_model.h"
#include "core/backend/cuda/kernel/contraction_tasks.h"
#include "core/base/element_type.h"

namespace tensord::core::cuda {

/// Bytes of an element in the type in which direct kernels compute operands of
/// `type`.
/// Requires  `type` is not bool.
int64_t ArithmeticBytes(ElementType type);

/// What a multiprocessor multiplies and adds in a cycle: complex numbers as
/// four real ones, int64 as four of int32.
double DirectProductsPerCycle(const GpuModel& model, ElementType type);

/// The part of DirectProductsPerCycle() that `tile` reaches when neither memory
/// nor waves of blocks hold it up: for a tile and its terms in shared memory,
/// it counts the cycles that issue instructions and those that shared memory
/// takes.
///
/// Units  a number in (0, 1).
double TileEfficiency(const GpuModel& model, ElementType type, DirectTile tile,
                      const DirectReading& a, const DirectReading& b);

}  // namespace tensord::core::cuda
