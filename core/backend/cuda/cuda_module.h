// The CUDA backend as a module.
#pragma once

#include "core/backend/backend_module.h"

/// The one function that the shared library exports (kBackendModuleFunction).
extern "C" __attribute__((visibility("default")))
const tensord::core::BackendModule*
tensord_backend_module();
