// Reductions of groups of 16-bit floating-point numbers.
#include "core/backend/cuda/kernel/groups/reduction_groups.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueReductionGroups<Half>(const ReductionGroupsTask&,
                                                cudaStream_t);
template cudaError_t QueueReductionGroups<Bfloat16>(const ReductionGroupsTask&,
                                                    cudaStream_t);

}  // namespace tensord::core::cuda
