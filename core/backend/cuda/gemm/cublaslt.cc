#include "core/backend/cuda/gemm/cublaslt.h"

#include "core/backend/cuda/matrix/library_functions.h"
#include "core/base/status.h"

namespace tensord::core::cuda {

absl::StatusOr<CublasLt> LoadCublasLt(const std::string& file) {
  TENSORD_ASSIGN_OR_RETURN(
      LibraryFunctions library,
      LibraryFunctions::Load(file, "cuBLASLt", "CUBLASLT_UNAVAILABLE"));
  CublasLt functions;
  library.Find("cublasLtCreate", functions.Create);
  library.Find("cublasLtDestroy", functions.Destroy);
  library.Find("cublasLtGetVersion", functions.GetVersion);
  library.Find("cublasLtGetStatusString", functions.GetStatusString);
  library.Find("cublasLtMatmulDescCreate", functions.MatmulDescCreate);
  library.Find("cublasLtMatmulDescDestroy", functions.MatmulDescDestroy);
  library.Find("cublasLtMatmulDescSetAttribute",
               functions.MatmulDescSetAttribute);
  library.Find("cublasLtMatrixLayoutCreate", functions.MatrixLayoutCreate);
  library.Find("cublasLtMatrixLayoutDestroy", functions.MatrixLayoutDestroy);
  library.Find("cublasLtMatrixLayoutSetAttribute",
               functions.MatrixLayoutSetAttribute);
  library.Find("cublasLtMatmulPreferenceCreate",
               functions.MatmulPreferenceCreate);
  library.Find("cublasLtMatmulPreferenceDestroy",
               functions.MatmulPreferenceDestroy);
  library.Find("cublasLtMatmulPreferenceSetAttribute",
               functions.MatmulPreferenceSetAttribute);
  library.Find("cublasLtMatmulAlgoGetHeuristic",
               functions.MatmulAlgoGetHeuristic);
  library.Find("cublasLtMatmul", functions.Matmul);
  TENSORD_RETURN_IF_ERROR(library.Check());
  return functions;
}

absl::Status CheckCublasLt(const CublasLt& library, cublasStatus_t status,
                           absl::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return Internal("CUBLASLT_ERROR", what, ": ",
                  library.GetStatusString(status));
}

}  // namespace tensord::core::cuda
