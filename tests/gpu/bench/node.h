// What the benchmarks need of a node that the simulated one does not have in
// the same way. node_real.cc and node_simulated.cc are the two nodes.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/memory/memory_resource.h"

namespace tensord::test {

/// Called before anything else.
void PrepareNode();

/// The memory pool of CUDA's driver.
class StreamOrderedMemory : public core::MemoryResource {
 public:
  /// Bytes taken from the device.
  virtual absl::StatusOr<int64_t> ReservedBytes() = 0;
  /// Returns what nobody uses to the device.
  virtual absl::Status Trim() = 0;
};

/// Errors  UNIMPLEMENTED: the node has none.
absl::StatusOr<std::unique_ptr<StreamOrderedMemory>>
CreateStreamOrderedMemory();

}  // namespace tensord::test
