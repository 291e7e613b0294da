// The CPU as a device.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/backend/backend.h"

namespace tensord::core {

struct CpuOptions {
  /// Threads for kernels, the caller's included. 0: one a core that this
  /// process may run on.
  int thread_count = 0;
  /// Memory the device says it has. 0: the machine's.
  int64_t memory_bytes = 0;
};

/// The device "cpu:0". Work on its streams is done when Launch() returns.
///
/// Sets the environment variable that chooses OpenBLAS's kernels before loading
/// it, so call this before other threads read the environment.
std::unique_ptr<Backend> CreateCpuBackend(const CpuOptions& options);

}  // namespace tensord::core
