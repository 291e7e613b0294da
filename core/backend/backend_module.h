// Backends that are loaded at run time, so that a server whose node lacks their
// libraries starts without them.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/backend/backend.h"

namespace tensord::core {

/// What the module and the server must both be built as, since C++ types pass
/// between them.
inline constexpr char kBackendBuild[] = "tensord 1, GCC " __VERSION__;

/// A shared library's way of making backends.
struct BackendModule {
  const char* build;  // kBackendBuild of the library

  /// How many devices the node has for it; at least 1.
  /// Errors  UNAVAILABLE: none, and why.
  absl::StatusOr<int> (*count_devices)();

  /// The `ordinal`-th of them.
  /// Errors  UNAVAILABLE: it cannot be used, and why.
  absl::StatusOr<std::unique_ptr<Backend>> (*create)(int ordinal);
};

/// The name of the one function that such a library exports: it takes nothing
/// and returns a BackendModule that lives as long as the library.
inline constexpr char kBackendModuleFunction[] = "tensord_backend_module";
using BackendModuleFunction = const BackendModule* (*)();

}  // namespace tensord::core
