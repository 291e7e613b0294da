// Contractions of float16 and bfloat16, in float32.
#include "core/backend/cuda/kernel/direct/contraction_direct.cuh"
#include "core/backend/cuda/kernel/direct/contraction_threads.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueContractionDirect<Half>(const ContractionDirectTask&,
                                                  cudaStream_t);
template cudaError_t QueueContractionDirect<Bfloat16>(
    const ContractionDirectTask&, cudaStream_t);

template cudaError_t QueueContractionThreads<Half>(
    const ContractionThreadsTask&, cudaStream_t);
template cudaError_t QueueContractionThreads<Bfloat16>(
    const ContractionThreadsTask&, cudaStream_t);

}  // namespace tensord::core::cuda
