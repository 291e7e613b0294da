#include "core/backend/cpu/factorization/lapack_decompositions.h"

#include "core/base/status.h"

namespace tensord::core {

absl::StatusOr<LapackDecompositions> LapackDecompositions::Find(
    const Blas& blas) {
  LapackDecompositions lapack;
  TENSORD_RETURN_IF_ERROR(blas.Resolve(
      {"sgesdd_", "dgesdd_", "cgesdd_", "zgesdd_"}, lapack.gesdd_));
  TENSORD_RETURN_IF_ERROR(blas.Resolve(
      {"sgesvd_", "dgesvd_", "cgesvd_", "zgesvd_"}, lapack.gesvd_));
  TENSORD_RETURN_IF_ERROR(blas.Resolve(
      {"ssyevd_", "dsyevd_", "cheevd_", "zheevd_"}, lapack.heevd_));
  TENSORD_RETURN_IF_ERROR(blas.Resolve(
      {"spotrf_", "dpotrf_", "cpotrf_", "zpotrf_"}, lapack.potrf_));
  return lapack;
}

}  // namespace tensord::core
