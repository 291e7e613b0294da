// A GPU as a device.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/backend/backend.h"

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

/// The same for tests: problems of more than `element_limit` elements run in
/// parts (parts/kernels_in_parts.h), not only those from 2^31 on.
absl::StatusOr<std::unique_ptr<Backend>> CreateCudaBackend(
    int ordinal, int64_t element_limit);

}  // namespace tensord::core
