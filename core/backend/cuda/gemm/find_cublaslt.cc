#include "absl/strings/str_cat.h"
#include "core/backend/cuda/gemm/cublaslt.h"

namespace tensord::core::cuda {

absl::StatusOr<CublasLt> FindCublasLt() {
  return LoadCublasLt(absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR));
}

}  // namespace tensord::core::cuda
