// Contractions of complex numbers.
#include "core/backend/cuda/kernel/direct/contraction_direct.cuh"
#include "core/backend/cuda/kernel/direct/contraction_threads.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueContractionDirect<std::complex<float>>(
    const ContractionDirectTask&, cudaStream_t);
template cudaError_t QueueContractionDirect<std::complex<double>>(
    const ContractionDirectTask&, cudaStream_t);

template cudaError_t QueueContractionThreads<std::complex<float>>(
    const ContractionThreadsTask&, cudaStream_t);
template cudaError_t QueueContractionThreads<std::complex<double>>(
    const ContractionThreadsTask&, cudaStream_t);

}  // namespace tensord::core::cuda
