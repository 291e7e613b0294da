// Contractions of float64.
#include "core/backend/cuda/kernel/direct/contraction_direct.cuh"

namespace tensord::core::cuda {

TENSORD_CONTRACTIONS_OF(double);

}  // namespace tensord::core::cuda
