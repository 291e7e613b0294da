#include "core/backend/cuda/matrix/library_functions.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::core::cuda {
namespace {

absl::Status Unavailable(absl::string_view reason, absl::string_view what) {
  return Error(absl::StatusCode::kUnavailable, reason, what);
}

}  // namespace

absl::StatusOr<LibraryFunctions> LibraryFunctions::Load(
    const std::string& file, absl::string_view name, absl::string_view reason) {
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Unavailable(reason,
                       absl::StrCat(name, " cannot be loaded: ", dlerror()));
  }
  return LibraryFunctions(library, file, reason);
}

void* LibraryFunctions::Find(const std::string& symbol) {
  void* const found = dlsym(library_, symbol.c_str());
  if (found == nullptr) missing_ = symbol;
  return found;
}

absl::Status LibraryFunctions::Check() const {
  if (missing_.empty()) return absl::OkStatus();
  dlclose(library_);
  return Unavailable(reason_,
                     absl::StrCat(file_, " has no function ", missing_));
}

}  // namespace tensord::core::cuda
