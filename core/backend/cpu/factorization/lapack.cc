#include "core/backend/cpu/factorization/lapack.h"

#include "core/base/status.h"

namespace tensord::core {

absl::StatusOr<Lapack> Lapack::Find(const Blas& blas) {
  Lapack lapack;
  TENSORD_RETURN_IF_ERROR(blas.Resolve(
      {"sgeqrf_", "dgeqrf_", "cgeqrf_", "zgeqrf_"}, lapack.geqrf_));
  TENSORD_RETURN_IF_ERROR(blas.Resolve(
      {"sormqr_", "dormqr_", "cunmqr_", "zunmqr_"}, lapack.ormqr_));
  TENSORD_RETURN_IF_ERROR(blas.Resolve(
      {"sorgqr_", "dorgqr_", "cungqr_", "zungqr_"}, lapack.orgqr_));
  return lapack;
}

}  // namespace tensord::core
