// A device family's way of computing: kernels, memory, streams.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/backend/kernel.h"
#include "core/device/device.h"
#include "core/memory/memory_resource.h"

namespace tensord::core {

template <typename Kernel>
using KernelList = std::vector<std::unique_ptr<const Kernel>>;

/// The kernels of a backend, each list from the most special to the reference
/// kernel, which supports every problem.
struct KernelLists {
  KernelList<PermutationKernel> permutation;
  KernelList<ElementwiseKernel> elementwise;
  KernelList<ReductionKernel> reduction;
  KernelList<ContractionKernel> contraction;
};

/// One device.
///
/// Threads  safe for concurrent use.
/// Owner    the Engine; outlives streams, plans and buffers made from it.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const DeviceInfo& info() const = 0;
  virtual const KernelLists& kernels() const = 0;

  /// The device's memory itself, without pool or limit.
  virtual MemoryResource& memory() = 0;

  /// Host memory that streams copy from and to at full speed.
  virtual MemoryResource& staging_memory() = 0;

  /// OK, or UNAVAILABLE from the moment when the device is lost.
  virtual absl::Status health() const = 0;

  /// Errors  UNAVAILABLE: the device is lost.
  virtual absl::StatusOr<std::unique_ptr<Stream>> CreateStream() = 0;
};

}  // namespace tensord::core
