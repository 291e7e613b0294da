#include "core/backend/cuda/gemm/cublaslt.h"

#include <dlfcn.h>

#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

absl::Status Unavailable(absl::string_view what) {
  return Error(absl::StatusCode::kUnavailable, "CUBLASLT_UNAVAILABLE", what);
}

}  // namespace

absl::StatusOr<CublasLt> LoadCublasLt(const std::string& file) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Unavailable(absl::StrCat("cuBLASLt cannot be loaded: ", dlerror()));
  }
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto& function) {
    void* const symbol = dlsym(library, name);
    if (symbol == nullptr) missing = name;
    function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol);
  };
  CublasLt functions;
  find("cublasLtCreate", functions.Create);
  find("cublasLtDestroy", functions.Destroy);
  find("cublasLtGetVersion", functions.GetVersion);
  find("cublasLtGetStatusString", functions.GetStatusString);
  find("cublasLtMatmulDescCreate", functions.MatmulDescCreate);
  find("cublasLtMatmulDescDestroy", functions.MatmulDescDestroy);
  find("cublasLtMatmulDescSetAttribute", functions.MatmulDescSetAttribute);
  find("cublasLtMatrixLayoutCreate", functions.MatrixLayoutCreate);
  find("cublasLtMatrixLayoutDestroy", functions.MatrixLayoutDestroy);
  find("cublasLtMatrixLayoutSetAttribute", functions.MatrixLayoutSetAttribute);
  find("cublasLtMatmulPreferenceCreate", functions.MatmulPreferenceCreate);
  find("cublasLtMatmulPreferenceDestroy", functions.MatmulPreferenceDestroy);
  find("cublasLtMatmulPreferenceSetAttribute",
       functions.MatmulPreferenceSetAttribute);
  find("cublasLtMatmulAlgoGetHeuristic", functions.MatmulAlgoGetHeuristic);
  find("cublasLtMatmul", functions.Matmul);
  if (missing != nullptr) {
    dlclose(library);
    return Unavailable(absl::StrCat(file, " has no function ", missing));
  }
  return functions;
}

absl::Status CheckCublasLt(const CublasLt& library, cublasStatus_t status,
                           absl::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return Internal("CUBLASLT_ERROR", what, ": ",
                  library.GetStatusString(status));
}

}  // namespace tensord::core::cuda
