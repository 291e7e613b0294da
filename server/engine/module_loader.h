// Loads backends from shared libraries.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "core/backend/backend_module.h"

namespace tensord::server {

/// Reason of the error of LoadBackendModule().
inline constexpr char kModuleNotLoaded[] = "MODULE_NOT_LOADED";

/// The module in the shared library at `path`, which is never unloaded. The
/// libraries that it needs are looked for as the system does.
///
/// Errors  UNAVAILABLE, reason MODULE_NOT_LOADED: no such file, a library that
///         it needs is missing, or it was built for another server.
absl::StatusOr<const core::BackendModule*> LoadBackendModule(
    const std::string& path);

/// Where the module of name `file` is expected: beside the running program or
/// in ../lib/tensord from there, the first that exists; the former when none.
std::string DefaultModulePath(const std::string& file);

}  // namespace tensord::server
