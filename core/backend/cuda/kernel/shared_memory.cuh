// The shared memory of a block.
#pragma once

#include <cuda_runtime.h>

#ifdef __CUDACC__
namespace tensord::core {

/// The bytes of shared memory that the launch asked for, aligned to 16.
__device__ __forceinline__ void* SharedMemory() {
  extern __shared__ __align__(16) unsigned char tensord_shared_memory[];
  return tensord_shared_memory;
}

}  // namespace tensord::core
#else
#include "simt/shared_memory.h"
#endif
