// Launching kernels.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <utility>

namespace tensord::core::cuda {

/// How many threads run a kernel.
struct Grid {
  uint32_t blocks = 1;
  uint32_t threads = 1;  // of a block
  int64_t shared_bytes = 0;
};

// Shared memory that a kernel may have without asking.
inline constexpr int64_t kDefaultSharedBytes = 48 << 10;

/// Queues `kernel` on `stream`.
template <typename... Parameters, typename... Arguments>
cudaError_t Launch(const Grid& grid, cudaStream_t stream,
                   void (*kernel)(Parameters...), Arguments&&... arguments) {
  if (grid.shared_bytes > kDefaultSharedBytes) {
    const cudaError_t allowed =
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(grid.shared_bytes));
    if (allowed != cudaSuccess) return allowed;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(grid.blocks);
  config.blockDim = dim3(grid.threads);
  config.dynamicSmemBytes = static_cast<size_t>(grid.shared_bytes);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel,
                            std::forward<Arguments>(arguments)...);
}

}  // namespace tensord::core::cuda
