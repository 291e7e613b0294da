#include "tests/conformance/simulated_cusolver.h"

#include <atomic>

#include "core/backend/cuda/matrix/cublas.h"
#include "core/backend/cuda/matrix/cusolver.h"
#include "tests/simt/cusolver/blas_routines.h"
#include "tests/simt/cusolver/routines.h"

namespace tensord {
namespace {

std::atomic<bool> is_hidden = false;

template <typename T>
core::cuda::CusolverRoutines<T> Routines() {
  using Api = simt::CusolverApi<T>;
  return {.GeqrfSize = &Api::GeqrfSize,
          .Geqrf = &Api::Geqrf,
          .OrgqrSize = &Api::OrgqrSize,
          .Orgqr = &Api::Orgqr,
          .GesvdSize = &Api::GesvdSize,
          .Gesvd = &Api::Gesvd,
          .GesvdjSize = &Api::GesvdjSize,
          .Gesvdj = &Api::Gesvdj,
          .GesvdjBatchedSize = &Api::GesvdjBatchedSize,
          .GesvdjBatched = &Api::GesvdjBatched,
          .SyevdSize = &Api::SyevdSize,
          .Syevd = &Api::Syevd,
          .SyevjBatchedSize = &Api::SyevjBatchedSize,
          .SyevjBatched = &Api::SyevjBatched,
          .PotrfSize = &Api::PotrfSize,
          .Potrf = &Api::Potrf,
          .PotrfBatched = &Api::PotrfBatched,
          .GetrfSize = &Api::GetrfSize,
          .Getrf = &Api::Getrf,
          .Getrs = &Api::Getrs};
}

template <typename T>
core::cuda::CublasRoutines<T> BlasRoutines() {
  using Api = simt::CublasApi<T>;
  return {.Trsm = &Api::Trsm,
          .TrsmBatched = &Api::TrsmBatched,
          .GemmStridedBatched = &Api::GemmStridedBatched,
          .GetrfBatched = &Api::GetrfBatched,
          .GetrsBatched = &Api::GetrsBatched};
}

}  // namespace

void test::HideCusolver(bool hides) { is_hidden = hides; }

absl::StatusOr<core::cuda::Cusolver> core::cuda::FindCusolver() {
  if (is_hidden) return LoadCusolver("libcusolver-that-is-not-there.so");
  return Cusolver{
      .GetVersion = &cusolverGetVersion,
      .Create = &cusolverDnCreate,
      .Destroy = &cusolverDnDestroy,
      .SetStream = &cusolverDnSetStream,
      .CreateGesvdjInfo = &cusolverDnCreateGesvdjInfo,
      .DestroyGesvdjInfo = &cusolverDnDestroyGesvdjInfo,
      .CreateSyevjInfo = &cusolverDnCreateSyevjInfo,
      .DestroySyevjInfo = &cusolverDnDestroySyevjInfo,
      .routines = {Routines<float>(), Routines<double>(), Routines<cuComplex>(),
                   Routines<cuDoubleComplex>()}};
}

absl::StatusOr<core::cuda::Cublas> core::cuda::FindCublas() {
  return Cublas{
      .Create = &cublasCreate_v2,
      .Destroy = &cublasDestroy_v2,
      .SetStream = &cublasSetStream_v2,
      .routines = {BlasRoutines<float>(), BlasRoutines<double>(),
                   BlasRoutines<cuComplex>(), BlasRoutines<cuDoubleComplex>()}};
}

}  // namespace tensord
