#include "tests/conformance/simulated_cublaslt.h"

#include <atomic>

#include "core/backend/cuda/gemm/cublaslt.h"

namespace tensord {
namespace {

std::atomic<bool> is_hidden = false;

}  // namespace

void test::HideCublasLt(bool hides) { is_hidden = hides; }

absl::StatusOr<core::cuda::CublasLt> core::cuda::FindCublasLt() {
  if (is_hidden) return LoadCublasLt("libcublasLt-that-is-not-there.so");
  return CublasLt{
      .Create = &cublasLtCreate,
      .Destroy = &cublasLtDestroy,
      .GetVersion = &cublasLtGetVersion,
      .GetStatusString = &cublasLtGetStatusString,
      .MatmulDescCreate = &cublasLtMatmulDescCreate,
      .MatmulDescDestroy = &cublasLtMatmulDescDestroy,
      .MatmulDescSetAttribute = &cublasLtMatmulDescSetAttribute,
      .MatrixLayoutCreate = &cublasLtMatrixLayoutCreate,
      .MatrixLayoutDestroy = &cublasLtMatrixLayoutDestroy,
      .MatrixLayoutSetAttribute = &cublasLtMatrixLayoutSetAttribute,
      .MatmulPreferenceCreate = &cublasLtMatmulPreferenceCreate,
      .MatmulPreferenceDestroy = &cublasLtMatmulPreferenceDestroy,
      .MatmulPreferenceSetAttribute = &cublasLtMatmulPreferenceSetAttribute,
      .MatmulAlgoGetHeuristic = &cublasLtMatmulAlgoGetHeuristic,
      .Matmul = &cublasLtMatmul};
}

}  // namespace tensord
