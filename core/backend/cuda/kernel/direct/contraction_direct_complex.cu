// Contractions of complex numbers.
#include "core/backend/cuda/kernel/direct/contraction_direct.cuh"

namespace tensord::core::cuda {

TENSORD_CONTRACTIONS_OF(std::complex<float>);
TENSORD_CONTRACTIONS_OF(std::complex<double>);

}  // namespace tensord::core::cuda
