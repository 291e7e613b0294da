// Contractions of complex numbers, tile by tile.
#include "core/backend/cuda/kernel/direct/contraction_direct.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueContractionDirect<std::complex<float>>(
    const ContractionDirectTask&, cudaStream_t);
template cudaError_t QueueContractionDirect<std::complex<double>>(
    const ContractionDirectTask&, cudaStream_t);

}  // namespace tensord::core::cuda
