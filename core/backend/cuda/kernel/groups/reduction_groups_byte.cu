// Reductions of groups of integers of 8 bits.
#include "core/backend/cuda/kernel/groups/reduction_groups.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueReductionGroups<int8_t>(const ReductionGroupsTask&,
                                                  cudaStream_t);
template cudaError_t QueueReductionGroups<uint8_t>(const ReductionGroupsTask&,
                                                   cudaStream_t);

}  // namespace tensord::core::cuda
