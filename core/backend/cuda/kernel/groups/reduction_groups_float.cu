// Reductions of groups of float32 and float64.
#include "core/backend/cuda/kernel/groups/reduction_groups.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueReductionGroups<float>(const ReductionGroupsTask&,
                                                 cudaStream_t);
template cudaError_t QueueReductionGroups<double>(const ReductionGroupsTask&,
                                                  cudaStream_t);

}  // namespace tensord::core::cuda
