// Contractions of float64.
#include "core/backend/cuda/kernel/direct/contraction_direct.cuh"
#include "core/backend/cuda/kernel/direct/contraction_threads.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueContractionDirect<double>(
    const ContractionDirectTask&, cudaStream_t);

template cudaError_t QueueContractionThreads<double>(
    const ContractionThreadsTask&, cudaStream_t);

}  // namespace tensord::core::cuda
