// Element-wise expressions of integers.
#include "core/backend/cuda/kernel/groups/elementwise_groups.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueElementwiseGroups<int8_t>(const ElementwiseFusedTask&,
                                                    cudaStream_t);
template cudaError_t QueueElementwiseGroups<int16_t>(
    const ElementwiseFusedTask&, cudaStream_t);
template cudaError_t QueueElementwiseGroups<int32_t>(
    const ElementwiseFusedTask&, cudaStream_t);
template cudaError_t QueueElementwiseGroups<int64_t>(
    const ElementwiseFusedTask&, cudaStream_t);
template cudaError_t QueueElementwiseGroups<uint8_t>(
    const ElementwiseFusedTask&, cudaStream_t);
template cudaError_t QueueElementwiseGroups<bool>(const ElementwiseFusedTask&,
                                                  cudaStream_t);

}  // namespace tensord::core::cuda
