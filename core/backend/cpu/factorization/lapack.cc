#include "core/backend/cpu/factorization/lapack.h"

#include "core/base/status.h"

namespace tensord::core {

absl::StatusOr<Lapack> Lapack::Find(const Blas& blas) {
  Lapack lapack;
  auto& [sgeqrf, dgeqrf, cgeqrf, zgeqrf] = lapack.geqrf_;
  TENSORD_RETURN_IF_ERROR(blas.Resolve("sgeqrf_", sgeqrf.call));
  TENSORD_RETURN_IF_ERROR(blas.Resolve("dgeqrf_", dgeqrf.call));
  TENSORD_RETURN_IF_ERROR(blas.Resolve("cgeqrf_", cgeqrf.call));
  TENSORD_RETURN_IF_ERROR(blas.Resolve("zgeqrf_", zgeqrf.call));
  auto& [sormqr, dormqr, cunmqr, zunmqr] = lapack.ormqr_;
  TENSORD_RETURN_IF_ERROR(blas.Resolve("sormqr_", sormqr.call));
  TENSORD_RETURN_IF_ERROR(blas.Resolve("dormqr_", dormqr.call));
  TENSORD_RETURN_IF_ERROR(blas.Resolve("cunmqr_", cunmqr.call));
  TENSORD_RETURN_IF_ERROR(blas.Resolve("zunmqr_", zunmqr.call));
  auto& [sorgqr, dorgqr, cungqr, zungqr] = lapack.orgqr_;
  TENSORD_RETURN_IF_ERROR(blas.Resolve("sorgqr_", sorgqr.call));
  TENSORD_RETURN_IF_ERROR(blas.Resolve("dorgqr_", dorgqr.call));
  TENSORD_RETURN_IF_ERROR(blas.Resolve("cungqr_", cungqr.call));
  TENSORD_RETURN_IF_ERROR(blas.Resolve("zungqr_", zungqr.call));
  return lapack;
}

}  // namespace tensord::core
