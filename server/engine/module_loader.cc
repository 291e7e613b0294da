#include "server/engine/module_loader.h"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace tensord::server {
namespace {

absl::Status NotLoaded(absl::string_view message) {
  return core::Error(absl::StatusCode::kUnavailable, kModuleNotLoaded, message);
}

}  // namespace

absl::StatusOr<const core::BackendModule*> LoadBackendModule(
    const std::string& path) {
  // Kept for good: devices made by it may live until the process ends.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NotLoaded(dlerror());
  void* const symbol = dlsym(library, core::kBackendModuleFunction);
  if (symbol == nullptr) {
    return NotLoaded(absl::StrCat(path, " is no backend of tensord: it has no ",
                                  core::kBackendModuleFunction));
  }
  const auto function = reinterpret_cast<core::BackendModuleFunction>(symbol);
  const core::BackendModule* const module = function();
  if (std::strcmp(module->build, core::kBackendBuild) != 0) {
    return NotLoaded(absl::StrCat(path, " was built as '", module->build,
                                  "', wanted '", core::kBackendBuild, "'"));
  }
  return module;
}

std::string DefaultModulePath(const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = program.parent_path();
  const fs::path installed = folder.parent_path() / "lib" / "tensord" / file;
  if (!fs::exists(folder / file, error) && fs::exists(installed, error)) {
    return installed.string();
  }
  return (folder / file).string();
}

}  // namespace tensord::server
