// Contractions of float16 and bfloat16, in float32.
#include "core/backend/cuda/kernel/direct/contraction_direct.cuh"

namespace tensord::core::cuda {

TENSORD_CONTRACTIONS_OF(Half);
TENSORD_CONTRACTIONS_OF(Bfloat16);

}  // namespace tensord::core::cuda
