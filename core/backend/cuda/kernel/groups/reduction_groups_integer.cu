// Reductions of groups of integers of 16 to 64 bits.
#include "core/backend/cuda/kernel/groups/reduction_groups.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueReductionGroups<int16_t>(const ReductionGroupsTask&,
                                                   cudaStream_t);
template cudaError_t QueueReductionGroups<int32_t>(const ReductionGroupsTask&,
                                                   cudaStream_t);
template cudaError_t QueueReductionGroups<int64_t>(const ReductionGroupsTask&,
                                                   cudaStream_t);

}  // namespace tensord::core::cuda
