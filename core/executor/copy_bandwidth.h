// How fast a device copies.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/backend/backend.h"
#include "core/device/device.h"

namespace tensord::core {

/// The rate at which a device copies `bytes` bytes of its memory to other
/// memory of its own, as operations do: by the kernel that is planned for a
/// permutation that changes no order. The best of a few spans, after a copy
/// each way that warms up. Memory comes from the backend and goes back to it.
///
/// Units     bytes read and bytes written, in 10^9 a second.
/// Requires  bytes > 0; `stream` is the backend's.
/// Errors    those of MakePlan; a kernel's; RESOURCE_EXHAUSTED: there is no
///           memory.
absl::StatusOr<double> MeasureCopyBandwidth(Backend& backend, int64_t bytes,
                                            Stream& stream);

}  // namespace tensord::core
