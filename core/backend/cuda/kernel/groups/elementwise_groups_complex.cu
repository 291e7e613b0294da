// Element-wise expressions of complex numbers.
#include "core/backend/cuda/kernel/groups/elementwise_groups.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueElementwiseGroups<std::complex<float>>(
    const ElementwiseFusedTask&, cudaStream_t);
template cudaError_t QueueElementwiseGroups<std::complex<double>>(
    const ElementwiseFusedTask&, cudaStream_t);

}  // namespace tensord::core::cuda
