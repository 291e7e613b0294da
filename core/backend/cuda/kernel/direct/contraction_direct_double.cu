// Contractions of float64, tile by tile.
#include "core/backend/cuda/kernel/direct/contraction_direct.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueContractionDirect<double>(
    const ContractionDirectTask&, cudaStream_t);

}  // namespace tensord::core::cuda
