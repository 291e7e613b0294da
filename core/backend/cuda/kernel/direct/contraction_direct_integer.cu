// Contractions of integers, which wrap.
#include "core/backend/cuda/kernel/direct/contraction_direct.cuh"
#include "core/backend/cuda/kernel/direct/contraction_threads.cuh"

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

template cudaError_t QueueContractionThreads<int8_t>(
    const ContractionThreadsTask&, cudaStream_t);
template cudaError_t QueueContractionThreads<uint8_t>(
    const ContractionThreadsTask&, cudaStream_t);
template cudaError_t QueueContractionThreads<int16_t>(
    const ContractionThreadsTask&, cudaStream_t);
template cudaError_t QueueContractionThreads<int32_t>(
    const ContractionThreadsTask&, cudaStream_t);
template cudaError_t QueueContractionThreads<int64_t>(
    const ContractionThreadsTask&, cudaStream_t);

}  // namespace tensord::core::cuda
