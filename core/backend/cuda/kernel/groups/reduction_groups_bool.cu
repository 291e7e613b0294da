// Reductions of groups of truth values.
#include "core/backend/cuda/kernel/groups/reduction_groups.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueReductionGroups<bool>(const ReductionGroupsTask&,
                                                cudaStream_t);

}  // namespace tensord::core::cuda
