// Contractions of integers, which wrap.
#include "core/backend/cuda/kernel/direct/contraction_direct.cuh"

namespace tensord::core::cuda {

TENSORD_CONTRACTIONS_OF(int8_t);
TENSORD_CONTRACTIONS_OF(uint8_t);
TENSORD_CONTRACTIONS_OF(int16_t);
TENSORD_CONTRACTIONS_OF(int32_t);
TENSORD_CONTRACTIONS_OF(int64_t);

}  // namespace tensord::core::cuda
