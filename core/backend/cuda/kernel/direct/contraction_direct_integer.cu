// Contractions of integers, which wrap, tile by tile.
#include "core/backend/cuda/kernel/direct/contraction_direct.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueContractionDirect<int8_t>(
    const ContractionDirectTask&, cudaStream_t);
template cudaError_t QueueContractionDirect<uint8_t>(
    const ContractionDirectTask&, cudaStream_t);
template cudaError_t QueueContractionDirect<int16_t>(
    const ContractionDirectTask&, cudaStream_t);
template cudaError_t QueueContractionDirect<int32_t>(
    const ContractionDirectTask&, cudaStream_t);
template cudaError_t QueueContractionDirect<int64_t>(
    const ContractionDirectTask&, cudaStream_t);

}  // namespace tensord::core::cuda
