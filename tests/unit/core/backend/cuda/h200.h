#pragma once

#include "core/backend/cuda/gpu_model.h"

namespace tensord::core::cuda {

/// What the models of kernels are tried with.
inline constexpr GpuModel kH200 = {.multiprocessor_count = 132,
                                   .memory_bytes_per_ns = 4800,
                                   .clock_ghz = 1.98};

}  // namespace tensord::core::cuda
