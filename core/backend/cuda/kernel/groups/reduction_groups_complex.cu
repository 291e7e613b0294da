// Reductions of groups of complex numbers.
#include "core/backend/cuda/kernel/groups/reduction_groups.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueReductionGroups<std::complex<float>>(
    const ReductionGroupsTask&, cudaStream_t);
template cudaError_t QueueReductionGroups<std::complex<double>>(
    const ReductionGroupsTask&, cudaStream_t);

}  // namespace tensord::core::cuda
