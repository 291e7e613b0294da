// Element-wise expressions of 16-bit floating-point numbers.
#include "core/backend/cuda/kernel/groups/elementwise_groups.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueElementwiseGroups<Half>(const ElementwiseFusedTask&,
                                                  cudaStream_t);
template cudaError_t QueueElementwiseGroups<Bfloat16>(
    const ElementwiseFusedTask&, cudaStream_t);

}  // namespace tensord::core::cuda
