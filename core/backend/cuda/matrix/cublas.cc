#include "core/backend/cuda/matrix/cublas.h"

#include "core/backend/cuda/matrix/library_functions.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

/// Those of one element type, whose names begin with `prefix`.
template <typename T>
void FindRoutines(LibraryFunctions& functions, const std::string& prefix,
                  CublasRoutines<T>& to) {
  functions.Find(prefix + "trsm_v2", to.Trsm);
  functions.Find(prefix + "trsmBatched", to.TrsmBatched);
  functions.Find(prefix + "gemmStridedBatched", to.GemmStridedBatched);
  functions.Find(prefix + "getrfBatched", to.GetrfBatched);
  functions.Find(prefix + "getrsBatched", to.GetrsBatched);
}

}  // namespace

absl::StatusOr<Cublas> LoadCublas(const std::string& file) {
  TENSORD_ASSIGN_OR_RETURN(
      LibraryFunctions functions,
      LibraryFunctions::Load(file, "cuBLAS", "CUBLAS_UNAVAILABLE"));
  Cublas found;
  functions.Find("cublasCreate_v2", found.Create);
  functions.Find("cublasDestroy_v2", found.Destroy);
  functions.Find("cublasSetStream_v2", found.SetStream);
  auto& [single, full, complex, full_complex] = found.routines;
  FindRoutines(functions, "cublasS", single);
  FindRoutines(functions, "cublasD", full);
  FindRoutines(functions, "cublasC", complex);
  FindRoutines(functions, "cublasZ", full_complex);
  TENSORD_RETURN_IF_ERROR(functions.Check());
  return found;
}

absl::Status CheckCublas(cublasStatus_t status, absl::string_view what) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return absl::OkStatus();
    case CUBLAS_STATUS_ALLOC_FAILED:
      return ResourceExhausted("DEVICE_MEMORY_EXHAUSTED", what,
                               ": cuBLAS finds no memory on the device");
    default:
      return Internal("CUBLAS_ERROR", what, ": cuBLAS says ",
                      static_cast<int>(status));
  }
}

}  // namespace tensord::core::cuda
