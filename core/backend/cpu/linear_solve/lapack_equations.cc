#include "core/backend/cpu/linear_solve/lapack_equations.h"

#include "core/base/status.h"

namespace tensord::core {

absl::StatusOr<LapackEquations> LapackEquations::Find(const Blas& blas) {
  LapackEquations lapack;
  TENSORD_RETURN_IF_ERROR(blas.Resolve(
      {"sgetrf_", "dgetrf_", "cgetrf_", "zgetrf_"}, lapack.getrf_));
  TENSORD_RETURN_IF_ERROR(blas.Resolve(
      {"slaswp_", "dlaswp_", "claswp_", "zlaswp_"}, lapack.laswp_));
  TENSORD_RETURN_IF_ERROR(blas.Resolve(
      {"spotrf_", "dpotrf_", "cpotrf_", "zpotrf_"}, lapack.potrf_));
  TENSORD_RETURN_IF_ERROR(
      blas.Resolve({"strsm_", "dtrsm_", "ctrsm_", "ztrsm_"}, lapack.trsm_));
  return lapack;
}

}  // namespace tensord::core
