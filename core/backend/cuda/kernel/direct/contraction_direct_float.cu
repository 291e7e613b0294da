// Contractions of float32.
#include "core/backend/cuda/kernel/direct/contraction_direct.cuh"

namespace tensord::core::cuda {

TENSORD_CONTRACTIONS_OF(float);

}  // namespace tensord::core::cuda
