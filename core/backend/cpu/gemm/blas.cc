#include "core/backend/cpu/gemm/blas.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status.h"

namespace tensord::core {
namespace {

constexpr char kLibrary[] = "libopenblas.so.0";

/// The library's name for the kernels that fit, or null for its own choice.
const char* CoreTypeFor(const CpuFeatures& features) {
  if (features.avx512_bf16) return "Cooperlake";
  if (features.avx512) return "SkylakeX";
  if (features.avx2) return "Haswell";
  return nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const Blas>> Blas::Load(
    const CpuFeatures& features) {
  if (const char* core_type = CoreTypeFor(features)) {
    setenv("OPENBLAS_CORETYPE", core_type, /*overwrite=*/0);
  }
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error(absl::StatusCode::kUnavailable, "BLAS_NOT_FOUND", dlerror());
  }
  std::unique_ptr<Blas> blas(new Blas(library));
  auto& [s, d, c, z] = blas->gemm_;
  TENSORD_RETURN_IF_ERROR(blas->Resolve("cblas_sgemm", s.call));
  TENSORD_RETURN_IF_ERROR(blas->Resolve("cblas_dgemm", d.call));
  TENSORD_RETURN_IF_ERROR(blas->Resolve("cblas_cgemm", c.call));
  TENSORD_RETURN_IF_ERROR(blas->Resolve("cblas_zgemm", z.call));
  auto& [sgemv, dgemv] = blas->gemv_;
  TENSORD_RETURN_IF_ERROR(blas->Resolve("cblas_sgemv", sgemv));
  TENSORD_RETURN_IF_ERROR(blas->Resolve("cblas_dgemv", dgemv));
  void (*set_num_threads)(int);
  char* (*get_corename)();
  char* (*get_config)();
  TENSORD_RETURN_IF_ERROR(
      blas->Resolve("openblas_set_num_threads", set_num_threads));
  TENSORD_RETURN_IF_ERROR(
      blas->Resolve("openblas_get_corename", get_corename));
  TENSORD_RETURN_IF_ERROR(blas->Resolve("openblas_get_config", get_config));
  // The library's own threads spin while they wait.
  set_num_threads(1);
  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  const std::vector<absl::string_view> words =
      absl::StrSplit(get_config(), ' ');
  blas->core_type_ = get_corename();
  blas->description_ = absl::StrCat(
      "OpenBLAS ", words.size() > 1 ? words[1] : "?", " ", blas->core_type_);
  return blas;
}

absl::StatusOr<void*> Blas::Find(const char* name) const {
  void* const address = dlsym(library_, name);
  if (address != nullptr) return address;
  return Error(absl::StatusCode::kUnavailable, "BLAS_INCOMPLETE",
               absl::StrCat(kLibrary, " has no ", name));
}

}  // namespace tensord::core
