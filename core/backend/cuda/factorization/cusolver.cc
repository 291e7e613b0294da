#include "core/backend/cuda/factorization/cusolver.h"

#include <dlfcn.h>

#include <type_traits>

#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

absl::Status Unavailable(absl::string_view what) {
  return Error(absl::StatusCode::kUnavailable, "CUSOLVER_UNAVAILABLE", what);
}

/// Finds functions; remembers one that is not there.
class Functions {
 public:
  explicit Functions(void* library) : library_(library) {}

  template <typename Function>
  void Find(const std::string& name, Function& function) {
    void* const symbol = dlsym(library_, name.c_str());
    if (symbol == nullptr) missing_ = name;
    function = reinterpret_cast<Function>(symbol);
  }
  const std::string& missing() const { return missing_; }

 private:
  void* const library_;
  std::string missing_;
};

/// Those of one element type, whose names begin with `prefix`.
template <typename T>
void FindRoutines(Functions& functions, const std::string& prefix,
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
}

}  // namespace

absl::StatusOr<Cusolver> LoadCusolver(const std::string& file) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Unavailable(absl::StrCat("cuSOLVER cannot be loaded: ", dlerror()));
  }
  Functions functions(library);
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
  if (!functions.missing().empty()) {
    dlclose(library);
    return Unavailable(
        absl::StrCat(file, " has no function ", functions.missing()));
  }
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
