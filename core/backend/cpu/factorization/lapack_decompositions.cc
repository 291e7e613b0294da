#include "core/backend/cpu/factorization/lapack_decompositions.h"

#include <array>

#include "core/base/status.h"

namespace tensord::core {
namespace {

/// Finds the routines of the four element types.
template <typename Routines>
absl::Status Resolve(const Blas& blas, const std::array<const char*, 4>& names,
                     Routines& routines) {
  auto& [s, d, c, z] = routines;
  TENSORD_RETURN_IF_ERROR(blas.Resolve(names[0], s.call));
  TENSORD_RETURN_IF_ERROR(blas.Resolve(names[1], d.call));
  TENSORD_RETURN_IF_ERROR(blas.Resolve(names[2], c.call));
  return blas.Resolve(names[3], z.call);
}

}  // namespace

absl::StatusOr<LapackDecompositions> LapackDecompositions::Find(
    const Blas& blas) {
  LapackDecompositions lapack;
  TENSORD_RETURN_IF_ERROR(Resolve(
      blas, {"sgesdd_", "dgesdd_", "cgesdd_", "zgesdd_"}, lapack.gesdd_));
  TENSORD_RETURN_IF_ERROR(Resolve(
      blas, {"sgesvd_", "dgesvd_", "cgesvd_", "zgesvd_"}, lapack.gesvd_));
  TENSORD_RETURN_IF_ERROR(Resolve(
      blas, {"ssyevd_", "dsyevd_", "cheevd_", "zheevd_"}, lapack.heevd_));
  TENSORD_RETURN_IF_ERROR(Resolve(
      blas, {"spotrf_", "dpotrf_", "cpotrf_", "zpotrf_"}, lapack.potrf_));
  return lapack;
}

}  // namespace tensord::core
