// cuBLASLt, found when it is needed: nodes without it compute with our own
// kernels.
#pragma once

#include <cublasLt.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tensord::core::cuda {

/// The functions of cuBLASLt that are used, as its own header declares them.
///
/// Lifetime  the library stays loaded.
struct CublasLt {
  decltype(&::cublasLtCreate) Create;
  decltype(&::cublasLtDestroy) Destroy;
  decltype(&::cublasLtGetVersion) GetVersion;
  decltype(&::cublasLtGetStatusString) GetStatusString;
  decltype(&::cublasLtMatmulDescCreate) MatmulDescCreate;
  decltype(&::cublasLtMatmulDescDestroy) MatmulDescDestroy;
  decltype(&::cublasLtMatmulDescSetAttribute) MatmulDescSetAttribute;
  decltype(&::cublasLtMatrixLayoutCreate) MatrixLayoutCreate;
  decltype(&::cublasLtMatrixLayoutDestroy) MatrixLayoutDestroy;
  decltype(&::cublasLtMatrixLayoutSetAttribute) MatrixLayoutSetAttribute;
  decltype(&::cublasLtMatmulPreferenceCreate) MatmulPreferenceCreate;
  decltype(&::cublasLtMatmulPreferenceDestroy) MatmulPreferenceDestroy;
  decltype(&::cublasLtMatmulPreferenceSetAttribute)
      MatmulPreferenceSetAttribute;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) MatmulAlgoGetHeuristic;
  decltype(&::cublasLtMatmul) Matmul;
};

/// Loads the library of that file name; the dynamic linker looks for it.
///
/// Errors  UNAVAILABLE: there is no such library, or it lacks a function.
absl::StatusOr<CublasLt> LoadCublasLt(const std::string& file);

/// The library of the version that this was built with.
///
/// Errors  as LoadCublasLt().
absl::StatusOr<CublasLt> FindCublasLt();

/// OK, or INTERNAL with what the library calls `status`; `what` says what was
/// tried.
absl::Status CheckCublasLt(const CublasLt& library, cublasStatus_t status,
                           absl::string_view what);

}  // namespace tensord::core::cuda
