#include "core/backend/cuda/matrix/cusolver.h"

#include <type_traits>

#include "absl/strings/str_cat.h"
#include "core/backend/cuda/matrix/library_functions.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

/// Those of one element type, whose names begin with `prefix`.
template <typename T>
void FindRoutines(LibraryFunctions& functions, const std::string& prefix,
                  CusolverRoutines<T>& to) {
  constexpr bool kIsComplex = !std::is_floating_point_v<T>;
  const auto find = [&](const char* name, auto& size, auto& function) {
    functions.Find(absl::StrCat(prefix, name, "_bufferSize"), size);
    functions.Find(absl::StrCat(prefix, name), function);
  };
  find("geqrf", to.GeqrfSize, to.Geqrf);
  find(kIsComplex ? "ungqr" : "orgqr", to.OrgqrSize, to.Orgqr);
  find("gesvd", to.GesvdSize, to.Gesvd);
  find("gesvdj", to.GesvdjSize, to.Gesvdj);
  find("gesvdjBatched", to.GesvdjBatchedSize, to.GesvdjBatched);
  find(kIsComplex ? "heevd" : "syevd", to.SyevdSize, to.Syevd);
  find(kIsComplex ? "heevjBatched" : "syevjBatched", to.SyevjBatchedSize,
       to.SyevjBatched);
  find("potrf", to.PotrfSize, to.Potrf);
  functions.Find(prefix + "potrfBatched", to.PotrfBatched);
  find("getrf", to.GetrfSize, to.Getrf);
  functions.Find(prefix + "getrs", to.Getrs);
}

}  // namespace

absl::StatusOr<Cusolver> LoadCusolver(const std::string& file) {
  TENSORD_ASSIGN_OR_RETURN(
      LibraryFunctions functions,
      LibraryFunctions::Load(file, "cuSOLVER", "CUSOLVER_UNAVAILABLE"));
  Cusolver found;
  functions.Find("cusolverGetVersion", found.GetVersion);
  functions.Find("cusolverDnCreate", found.Create);
  functions.Find("cusolverDnDestroy", found.Destroy);
  functions.Find("cusolverDnSetStream", found.SetStream);
  functions.Find("cusolverDnCreateGesvdjInfo", found.CreateGesvdjInfo);
  functions.Find("cusolverDnDestroyGesvdjInfo", found.DestroyGesvdjInfo);
  functions.Find("cusolverDnCreateSyevjInfo", found.CreateSyevjInfo);
  functions.Find("cusolverDnDestroySyevjInfo", found.DestroySyevjInfo);
  auto& [single, full, complex, full_complex] = found.routines;
  FindRoutines(functions, "cusolverDnS", single);
  FindRoutines(functions, "cusolverDnD", full);
  FindRoutines(functions, "cusolverDnC", complex);
  FindRoutines(functions, "cusolverDnZ", full_complex);
  TENSORD_RETURN_IF_ERROR(functions.Check());
  return found;
}

absl::Status CheckCusolver(cusolverStatus_t status, absl::string_view what) {
  switch (status) {
    case CUSOLVER_STATUS_SUCCESS: return absl::OkStatus();
    case CUSOLVER_STATUS_ALLOC_FAILED:
      return ResourceExhausted("DEVICE_MEMORY_EXHAUSTED", what,
                               ": cuSOLVER finds no memory on the device");
    default:
      return Internal("CUSOLVER_ERROR", what, ": cuSOLVER says ",
                      static_cast<int>(status));
  }
}

}  // namespace tensord::core::cuda
