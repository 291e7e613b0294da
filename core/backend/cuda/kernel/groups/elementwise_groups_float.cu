// Element-wise expressions of float32 and float64.
#include "core/backend/cuda/kernel/groups/elementwise_groups.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueElementwiseGroups<float>(const ElementwiseFusedTask&,
                                                   cudaStream_t);
template cudaError_t QueueElementwiseGroups<double>(const ElementwiseFusedTask&,
                                                    cudaStream_t);

}  // namespace tensord::core::cuda
