// A GPU as a device.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/backend/backend.h"
#include "core/backend/cuda/parts/kernels_in_parts.h"

namespace tensord::core {

/// How many GPUs this process can use; at least 1.
///
/// Errors  UNAVAILABLE: no driver, one that is too old, or no device.
absl::StatusOr<int> CountCudaDevices();

/// The device "cuda:<ordinal>".
///
/// Errors  UNAVAILABLE: there is no such device, or kernels for its
///         architecture are missing.
absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(int ordinal);

/// The same for tests: smaller and shorter problems run in parts, too.
absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(
    int ordinal, const cuda::PartLimits& limits);

}  // namespace tensord::core
