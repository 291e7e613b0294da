// Contractions of float16 and bfloat16, in float32, tile by tile.
#include "core/backend/cuda/kernel/direct/contraction_direct.cuh"

namespace tensord::core::cuda {

template cudaError_t QueueContractionDirect<Half>(const ContractionDirectTask&,
                                                  cudaStream_t);
template cudaError_t QueueContractionDirect<Bfloat16>(
    const ContractionDirectTask&, cudaStream_t);

}  // namespace tensord::core::cuda
